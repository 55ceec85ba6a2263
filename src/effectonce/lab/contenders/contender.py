"""What one has to say of a contender: its settings, how a task is defined with it, how an effect is written."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar

from effectonce.lab.trials.effects import Effects
from effectonce.lab.trials.place import Place


class Contender:
    """A column. One object a process; `prepare` is called before any task is defined."""

    name: ClassVar[str]
    title: ClassVar[str]
    package: ClassVar[str] = "celery"
    """The distribution whose version is shown."""
    beats: ClassVar[bool] = False
    """Whether it is asked about schedules."""
    works: ClassVar[bool] = True
    """Whether it is asked about tasks."""
    scheduler: ClassVar[str] = "celery.beat:PersistentScheduler"

    def version(self) -> str | None:
        """Return the installed version, None when it is not installed."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return None

    def is_asked(self, *, schedule: bool) -> bool:
        """Tell whether it is tried in a scenario about a *schedule*, or about tasks."""
        return self.beats if schedule else self.works

    def prepare(self, app: Any, place: Place) -> None:
        """Configure *app*."""

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define a task whose intent is named by *fields* among its arguments.

        *options* are Celery's, and ``leased=True`` for a body that holds a lease while it acts outside, ``strict=True``
        for the contender's way to raise at a duplicate, ``ttl`` for the life of its lock in seconds,
        ``reserve`` for the life of a reservation at the send.
        """
        raise NotImplementedError

    def write(self, effects: Effects, intent: str, at: float) -> None:
        """Take effect, in a body."""
        effects.add(intent, at)

    def sending(self, session: Any) -> AbstractContextManager[Any]:
        """What a caller puts around what it sends in the transaction of *session*."""
        del session
        return nullcontext()

    def create(self) -> None:
        """Make what it needs in the database."""

    def close(self) -> None:
        """Let go of what the process holds."""


def celery_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return *options* without the lab's own, acknowledged late unless they say otherwise, as is usual advice."""
    own = {name: value for name, value in options.items() if name not in {"leased", "strict", "ttl", "reserve"}}
    late = own.setdefault("acks_late", True)
    return {"reject_on_worker_lost": late, "shared": False, **own}
