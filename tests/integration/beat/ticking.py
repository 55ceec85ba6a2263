"""A beat inside the test's own process: ticked by hand, with a queue to look into."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import redis
from celery import Celery

from effectonce import EffectOnce
from effectonce.app.beat.scheduler import OnceScheduler
from effectonce.lab.process_tree import wait_until


def project(broker: str, ledger: str, wraps: str, *, name: str = "ticked", lease: float = 5.0, **conf: Any) -> Celery:
    """An app whose beat wraps *wraps*; its tasks are sent by name."""
    app = Celery(name, broker=broker, set_as_current=False)
    app.conf.update(result_expires=None, **conf)
    EffectOnce(app, ledger=ledger, beat_scheduler=wraps, beat_lease_seconds=lease)
    return app


@contextmanager
def beating(app: Celery, **options: Any) -> Iterator["Ticked"]:
    """A beat that is ticked as Celery's service does it, as often as asked."""
    scheduler = OnceScheduler(app, **options)
    try:
        yield Ticked(app, scheduler)
    finally:
        scheduler.close()


class Ticked:
    """The beat, and what it sent."""

    def __init__(self, app: Celery, scheduler: OnceScheduler) -> None:
        self.app, self.scheduler = app, scheduler
        self._client: Any = redis.Redis.from_url(app.conf.broker_url)

    @property
    def inner(self) -> Any:
        """The scheduler that is wrapped, while this beat leads."""
        reign = self.scheduler._reign
        assert reign is not None
        return reign.book.inner

    def until(self, happened: Callable[[], bool], *, seconds: float = 15.0) -> None:
        """Tick until *happened*."""

        def ticked() -> bool:
            self.scheduler.tick()
            return happened()

        assert wait_until(ticked, seconds=seconds), self.sent()

    def during(self, seconds: float) -> None:
        """Tick for a while."""
        end = time.monotonic() + seconds
        self.until(lambda: time.monotonic() > end, seconds=seconds + 10)

    def sent(self, entry: str = "") -> list[dict[str, Any]]:
        """The headers of the messages of an entry, oldest first."""
        found = [json.loads(raw)["headers"] for raw in reversed(self._client.lrange("celery", 0, -1))]
        return [each for each in found if not entry or each["effectonce_entry"].startswith(f"{entry}#")]

    def instants(self, entry: str) -> list[str]:
        """The instants that were sent."""
        return [each["effectonce_tick"] for each in self.sent(entry)]
