"""The request of a guarded task in the worker's main process.

Celery 5.7 acknowledges a task whose child died after its SUCCESS was stored, and never counts its part of a chord: the
chord hangs (hole H11). A guarded task may come back instead: its ledger knows that it is done, and the delivery
goes on from there. So its request says that no success was stored.

It also tells the body's process how the message was serialized, so that a copy can be made of it.
"""

from typing import Any

from kombu.utils.imports import symbol_by_name

from effectonce import crashpoints
from effectonce.domain.modes import Mode


class ComesBack:
    """Mixed into the request class of a guarded task."""

    def __init__(self, message: Any, *args: Any, **options: Any) -> None:
        super().__init__(message, *args, **options)  # type: ignore[call-arg]
        told: dict[str, Any] = self.request_dict  # type: ignore[attr-defined]
        told["properties"] = {**(told.get("properties") or {}), "content_type": message.content_type}

    def _success_was_stored(self) -> bool:
        """Say no where the ledger knows better; elsewhere it is Celery's to say."""
        return False if self._is_enforced else bool(super()._success_was_stored())  # type: ignore[misc]

    @property
    def _is_enforced(self) -> bool:
        task: Any = self.task  # type: ignore[attr-defined]
        guard = task.app.effectonce.guard_of(task)
        return guard is not None and guard.mode is Mode.ENFORCE

    def acknowledge(self) -> None:
        """Acknowledge as ever; a test may kill before it."""
        crashpoints.crash_point("ack.before")
        super().acknowledge()  # type: ignore[misc]


def guarded_request(base: Any) -> Any:
    """A class of requests like *base* (a class or its dotted name) whose tasks come back."""
    cls = symbol_by_name(base)
    if issubclass(cls, ComesBack):
        return cls
    return type(f"Guarded{cls.__name__}", (ComesBack, cls), {"__doc__": ComesBack.__doc__})
