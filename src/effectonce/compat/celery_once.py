"""`QueueOnce` and `AlreadyQueued` as celery-once 3.0 has them (cameronmaske/celery-once), over our leases.

    from effectonce.compat.celery_once import QueueOnce, AlreadyQueued   # was: from celery_once import ...

Options, hooks and the setting ``ONCE`` stay; ``ONCE["backend"]`` is used where it names a class of one's own. What is
otherwise than in celery-once, and why, stands in ``docs/how-to/move-from-celery-once.md``.
"""

from inspect import signature
from typing import Any, ClassVar, Final

from celery import Task, states
from celery.result import EagerResult
from celery.utils import uuid

from effectonce.compat.locks import Leases, imported

HOUR: Final = 3600


class AlreadyQueued(Exception):
    """The task is queued or running. *countdown*: seconds after which its lock has ended at the latest."""

    def __init__(self, countdown: float, task_id: str = "", key: str = "") -> None:
        super().__init__(countdown, task_id, key)
        self.countdown = countdown
        self.message = f"Expires in {countdown} seconds"
        self.task_id = task_id
        self.key = key

    def __str__(self) -> str:
        """As celery-once says it."""
        return self.message


class QueueOnce(Task):
    """A task that is not queued while it is queued or running."""

    abstract = True
    once: ClassVar[dict[str, Any]] = {"graceful": False, "unlock_before_run": False}

    @property
    def config(self) -> Any:
        """The app's configuration."""
        return self._get_app().conf

    @property
    def once_config(self) -> dict[str, Any]:
        """The setting ``ONCE``; none is needed any more."""
        return dict(self.config.get("ONCE") or {})

    @property
    def once_backend(self) -> Any:
        """A backend of the user's own, with ``raise_or_lock`` and ``clear_lock``; None: our leases."""
        path = self.once_config.get("backend", "")
        if not path or path.startswith("celery_once.backends."):
            return None
        return imported(path)(self.once_config.get("settings", {}))

    @property
    def default_timeout(self) -> float:
        """Seconds after which a lock ends whose task never came to its end."""
        return float(self.once_config.get("settings", {}).get("default_timeout", HOUR))

    def unlock_before_run(self) -> bool:
        """Whether the lock covers the time in the queue only."""
        return bool(self.once.get("unlock_before_run", False))

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Queue the task, unless it is: then raise AlreadyQueued, or answer a REJECTED result where that is graceful.

        A message that cannot be sent leaves no lock; a crash right after the lock leaves one until its time is over.
        """
        said = options.get("once") or {}
        timeout = said.get("timeout", self.once.get("timeout", self.default_timeout))
        task_id = options.pop("task_id", None) or uuid()
        key = None if options.get("retries") else self.get_key(args, kwargs)
        if key is not None:
            try:
                self._lock(key, timeout, task_id)
            except Exception as error:
                if type(error).__name__ != "AlreadyQueued":  # a backend of the user's own may raise the old one
                    raise
                if said.get("graceful", self.once.get("graceful", False)):
                    return EagerResult(None, None, states.REJECTED)
                raise
        try:
            return super().apply_async(args, kwargs, task_id=task_id, **options)
        except BaseException:
            if key is not None:
                self._unlock(key, task_id)
            raise

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run; the lock of a task that unlocks before is given back first."""
        if self.unlock_before_run():
            self._unlock(self.get_key(args, kwargs), self.request.id)
        return super().__call__(*args, **kwargs)

    def after_return(  # noqa: PLR0917 - Celery's own
        self, status: Any, retval: Any, task_id: str, args: Any, kwargs: Any, einfo: Any
    ) -> None:
        """Give the lock back, however the task ended."""
        if not self.unlock_before_run():
            self._unlock(self.get_key(args, kwargs), task_id)
        super().after_return(status, retval, task_id, args, kwargs, einfo)

    def get_key(self, args: Any = None, kwargs: Any = None) -> str:
        """What must not be queued twice: the task's name and its arguments, or those that ``keys`` names."""
        bound = self._get_call_args(args or (), kwargs or {})
        names = self.once.get("keys")
        chosen = bound if names is None else {name: bound[name] for name in names}
        return "_".join(["qo", self.name, *(f"{name}-{_text(chosen[name])}" for name in sorted(chosen))])

    def _get_call_args(self, args: Any, kwargs: Any) -> dict[str, Any]:
        bound = signature(self.run).bind(*args, **kwargs)
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if not isinstance(value, Task)}

    def _lock(self, key: str, timeout: float, task_id: str) -> None:
        own = self.once_backend
        if own is not None:
            own.raise_or_lock(key, timeout=timeout)
            return
        holder = Leases(self._get_app(), task=self.name).lock(key, task_id, timeout)
        if holder != task_id:
            raise AlreadyQueued(timeout, holder, key)

    def _unlock(self, key: str, task_id: str | None) -> None:
        own = self.once_backend
        if own is not None:
            own.clear_lock(key)
        elif task_id is not None:
            Leases(self._get_app(), task=self.name).unlock(key, task_id)


def _text(value: Any) -> str:
    """The same text for equal values, another one for ``1`` and ``"1"``."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_text(value[key])}" for key in sorted(value, key=repr)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_text, value)) + "]"
    return repr(value)
