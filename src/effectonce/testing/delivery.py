"""How a proof calls a task: as a worker would, and as a caller would that sends it again.

A guarded task of this library that finds its key busy says so (`EffectBusy`), as a call that cannot be put off does.
A worker would put the message off; here it is called again a little later. The lease of an attempt that is going to die
is short, so that it is soon known to be gone.
"""

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from effectonce.errors import EffectOnceError
from effectonce.testing.attempts import Attempt, current_attempt, run
from effectonce.testing.libraries import loaded

SHORT: Final = 0.15
"""Seconds that the claim of a guarded task lasts which is going to die."""

LONG: Final = 5.0
"""Seconds that another one's lasts, and that a second delivery waits for it at most: also beside a busy disk."""

_TURNS: Final = 20
_pause = threading.Event()


class Call:
    """A task with its arguments; a plain function is called as it is."""

    def __init__(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._task = task
        self._args = tuple(args)
        self._kwargs = dict(kwargs)

    @property
    def name(self) -> str:
        """How reports call it."""
        shown = [*map(repr, self._args), *(f"{name}={value!r}" for name, value in self._kwargs.items())]
        called = getattr(self._task, "name", None) or getattr(self._task, "__qualname__", repr(self._task))
        return f"{called}({', '.join(shown)})"

    @property
    def is_named_by_arguments(self) -> bool:
        """Whether a second message with the same arguments is the same intent: not where a policy names no key."""
        policy = getattr(self._task, "once", None)
        return policy is None or isinstance(getattr(policy, "key", ""), str) or callable(getattr(policy, "key", ""))

    def prepare(self) -> None:
        """Let ledgers make their tables that make them by themselves: putting the database back would take them away.

        One that does not answer is told of by the first delivery.
        """
        extension = getattr(getattr(self._task, "app", None), "effectonce", None)
        if extension is not None and getattr(self._task, "once", None) is not None:
            with suppress(EffectOnceError):
                for ledger in extension.ledgers:
                    ledger.read(bytes(16))

    def deliver(self, attempt: Attempt, message: str) -> Attempt:
        """One delivery of a message with this id."""
        return run(attempt, lambda: self._called(message))

    def deliver_until_done(self, make: Callable[[], Attempt], message: str) -> list[Attempt]:
        """Deliver; a busy one again, a little later."""
        made = []
        for _ in range(_TURNS):
            made.append(self.deliver(make(), message))
            if not is_busy(made[-1].outcome):
                break
            _pause.wait(SHORT / 2)
        return made

    def _called(self, message: str) -> Any:
        apply = getattr(self._task, "apply", None)
        if apply is None:
            return self._task(*self._args, **self._kwargs)
        result = apply(args=self._args, kwargs=self._kwargs, task_id=message)
        return result.result if result.failed() else result


def new_message() -> str:
    """The id of a message that nobody has sent before."""
    return str(uuid.uuid4())


def is_busy(outcome: Any) -> bool:
    """Tell whether a guarded call was refused since its key is held."""
    return isinstance(outcome, Exception) and getattr(outcome, "code", None) == "effect-busy"


@contextmanager
def short_leases() -> Iterator[None]:
    """Let claims of guarded tasks end soon."""
    guard = loaded("effectonce.app.guard")
    if guard is None:
        yield
        return
    plain = guard.Guard._claim  # noqa: SLF001 - our own; tests/testing holds the name

    def claim(*args: Any, **kwargs: Any) -> Any:
        made = plain(*args, **kwargs)
        attempt = current_attempt()
        dies = attempt is not None and attempt.dies is not None
        return replace(made, lease=min(made.lease, SHORT if dies else LONG))

    guard.Guard._claim = claim  # noqa: SLF001 - the same
    try:
        yield
    finally:
        guard.Guard._claim = plain  # noqa: SLF001 - the same
