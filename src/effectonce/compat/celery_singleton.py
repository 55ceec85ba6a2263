"""`Singleton`, `DuplicateTaskError` as celery-singleton 0.3 has them (steinitzu/celery-singleton), over our leases.

    from effectonce.compat.celery_singleton import Singleton   # was: from celery_singleton import Singleton

``unique_on``, ``raise_on_duplicate``, ``lock_expiry``, the hooks and the settings ``singleton_*`` stay;
``singleton_backend_class`` is used where it names a class of one's own. What is otherwise than in celery-singleton, and
why, stands in ``docs/how-to/move-from-celery-singleton.md``.
"""

import json
from hashlib import md5
from inspect import signature
from typing import Any, Final

from celery import Task
from celery.utils import uuid

from effectonce.compat.locks import Leases, imported

DAY: Final = 24 * 3600
"""Seconds that a lock lasts where nothing says how long: one without an end outlived every lost message."""


class DuplicateTaskError(Exception):
    """The task is queued or running; *task_id* is its message's."""

    def __init__(self, message: str, task_id: str) -> None:
        super().__init__(message, task_id)
        self.task_id = task_id

    def __str__(self) -> str:
        """The message alone."""
        return str(self.args[0])


class Config:
    """The settings ``singleton_*`` of an app."""

    def __init__(self, app: Any) -> None:
        self.app = app

    @property
    def key_prefix(self) -> str:
        """What the names of locks begin with."""
        return str(self.app.conf.get("singleton_key_prefix", "SINGLETONLOCK_"))

    @property
    def backend(self) -> Any:
        """A backend of the user's own, with ``lock``, ``unlock`` and ``get``; None: our leases."""
        given = self.app.conf.get("singleton_backend_class")
        if given is None or (isinstance(given, str) and given.startswith("celery_singleton.")):
            return None
        kind = imported(given) if isinstance(given, str) else given
        return kind(self.url, **self.app.conf.get("singleton_backend_kwargs", {}))

    @property
    def url(self) -> str:
        """Where celery-singleton keeps its locks: a URL of its own, a Redis of results, or the broker."""
        results = str(self.app.conf.get("result_backend") or "")
        fallback = results if results.startswith("redis://") else self.app.conf.get("broker_url")
        return str(self.app.conf.get("singleton_backend_url") or fallback or "")

    @property
    def raise_on_duplicate(self) -> bool:
        """Whether a duplicate is an error."""
        return bool(self.app.conf.get("singleton_raise_on_duplicate"))

    @property
    def lock_expiry(self) -> float:
        """Seconds that a lock lasts at most."""
        return float(self.app.conf.get("singleton_lock_expiry") or DAY)


class Singleton(Task):
    """A task that is sent once while it is queued or running; another send answers the first one's result."""

    abstract = True
    unique_on: Any = None
    raise_on_duplicate: bool | None = None
    lock_expiry: float | None = None

    @property
    def singleton_config(self) -> Config:
        """The app's settings."""
        return Config(self._get_app())

    def generate_lock(self, task_name: str, task_args: Any = None, task_kwargs: Any = None) -> str:
        """The name of the lock: of the task and its arguments, or of those that ``unique_on`` names."""
        args, kwargs = list(task_args or []), dict(task_kwargs or {})
        names = [self.unique_on] if isinstance(self.unique_on, str) else self.unique_on
        bound = self._bound(args, kwargs)
        chosen = {name: bound[name] for name in names} if names else bound
        text = task_name + json.dumps([]) + json.dumps(chosen, sort_keys=True)
        return self.singleton_config.key_prefix + md5(text.encode(), usedforsecurity=False).hexdigest()

    def _bound(self, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = signature(self.run).bind(*args, **kwargs)
        bound.apply_defaults()
        return {name: value for name, value in bound.arguments.items() if not isinstance(value, Task)}

    def apply_async(self, args: Any = None, kwargs: Any = None, task_id: str | None = None, **options: Any) -> Any:
        """Send, unless one is queued or running: then what `on_duplicate` answers."""
        task_id = task_id or uuid()
        lock = self.generate_lock(self.name, args, kwargs)
        holder = self.aquire_lock(lock, task_id)
        if holder != task_id:
            return self.on_duplicate(holder)
        try:
            return super().apply_async(args, kwargs, task_id=task_id, **options)
        except BaseException:
            self.unlock(lock, task_id)
            raise

    def aquire_lock(self, lock: str, task_id: str) -> str:
        """Take the lock, if nobody has it; answers the id of the message that has it now."""
        seconds = self.lock_expiry if self.lock_expiry is not None else self.singleton_config.lock_expiry
        own = self.singleton_config.backend
        if own is None:
            return Leases(self._get_app(), task=self.name).lock(lock, task_id, seconds)
        while not own.lock(lock, task_id, expiry=seconds):
            holder = own.get(lock)
            if holder:
                return str(holder)
        return task_id

    def unlock(self, lock: str, task_id: str | None = None) -> None:
        """Give the lock back, if it is that message's; by default the one that is carried out."""
        own = self.singleton_config.backend
        holder = task_id or self.request.id
        if own is not None:
            own.unlock(lock)
        elif holder is not None:
            Leases(self._get_app(), task=self.name).unlock(lock, holder)

    def release_lock(self, task_args: Any = None, task_kwargs: Any = None, task_id: str | None = None) -> None:
        """Give back the lock of these arguments."""
        self.unlock(self.generate_lock(self.name, task_args, task_kwargs), task_id)

    def on_duplicate(self, existing_task_id: str) -> Any:
        """What a second send gets: the first one's result, or DuplicateTaskError."""
        said = self.raise_on_duplicate
        if self.singleton_config.raise_on_duplicate if said is None else said:
            message = f"Attempted to queue a duplicate of task ID {existing_task_id}"
            raise DuplicateTaskError(message, task_id=existing_task_id)
        return self.AsyncResult(existing_task_id)

    def on_failure(self, exc: Any, task_id: str, args: Any, kwargs: Any, einfo: Any) -> None:
        """Give the lock back."""
        self.release_lock(args, kwargs, task_id)
        super().on_failure(exc, task_id, args, kwargs, einfo)

    def on_success(self, retval: Any, task_id: str, args: Any, kwargs: Any) -> None:
        """Give the lock back."""
        self.release_lock(args, kwargs, task_id)
        super().on_success(retval, task_id, args, kwargs)
