"""Libraries that put a lock in Redis around the life of a message, each as its own documentation shows it."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from effectonce.lab.contenders.contender import Contender, celery_options
from effectonce.lab.trials.place import Place

HOUR = 3600


class CeleryOnce(Contender):
    """A lock from the send to the end of the body."""

    name = "celery-once"
    title = "celery-once"
    package = "celery-once"

    def prepare(self, app: Any, place: Place) -> None:
        """Name its Redis."""
        settings = {"url": place.locks, "default_timeout": HOUR}
        app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": settings}

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define it."""
        from celery_once import QueueOnce  # noqa: PLC0415 - an optional rival

        once = {"keys": _some(fields, body), "graceful": not options.get("strict"), "timeout": options.get("ttl", HOUR)}
        return app.task(name=name, base=QueueOnce, once=once, **celery_options(options))(body)


class CelerySingleton(Contender):
    """A lock from the send to the end of the body, without an end of its own."""

    name = "celery-singleton"
    title = "celery-singleton"
    package = "celery-singleton"

    def prepare(self, app: Any, place: Place) -> None:
        """Name its Redis."""
        app.conf.singleton_backend_url = place.locks

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define it."""
        from celery_singleton import Singleton  # noqa: PLC0415 - an optional rival

        own = {"unique_on": _some(fields, body), "raise_on_duplicate": bool(options.get("strict"))}
        expiry = {"lock_expiry": options["ttl"]} if "ttl" in options else {}
        return app.task(name=name, base=Singleton, **own, **expiry, **celery_options(options))(body)


class Heimdall(Contender):
    """A lock from the send to the end of the body, of an hour, in the Redis of the results."""

    name = "celery-heimdall"
    title = "celery-heimdall"
    package = "celery-heimdall"

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define it; the key is its default one, of name and arguments."""
        from celery_heimdall import HeimdallTask  # noqa: PLC0415 - an optional rival

        del fields
        own = {"unique": True, "unique_timeout": options.get("ttl", HOUR), "unique_raises": bool(options.get("strict"))}
        return app.task(name=name, base=HeimdallTask, heimdall=own, **celery_options(options))(body)


class CeleryOnceTask(Contender):
    """One lock while a message waits, another one while it runs."""

    name = "celery-once-task"
    title = "celery-once-task"
    package = "celery-once-task"

    def prepare(self, app: Any, place: Place) -> None:
        """Name its Redis, connect its signals, add its step."""
        import celery_once_task as rival  # noqa: PLC0415 - an optional rival

        rival.configure(redis_url=place.locks)
        rival.setup_once_task_signals()
        app.steps["worker"].add(rival.OnceTaskUnlockBootStep)

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define it."""
        from celery_once_task import OnceTask  # noqa: PLC0415 - an optional rival

        del fields
        return app.task(name=name, base=OnceTask, **celery_options(options))(body)


def _some(fields: Sequence[str], body: Callable[..., Any]) -> list[str] | None:
    """The arguments that make the key, None for all: naming one that is left to its default is an error of theirs."""
    named = [name for name in signature(body).parameters if name != "self"]
    return None if set(fields) >= set(named) else list(fields)
