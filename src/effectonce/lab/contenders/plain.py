"""Celery as it is, with its own deduplication, and with other schedulers."""

from collections.abc import Callable, Sequence
from typing import Any

from effectonce.lab.contenders.contender import Contender, celery_options
from effectonce.lab.trials.place import Place


class Plain(Contender):
    """Celery with the usual advice: acknowledge late, requeue when the worker is lost."""

    name = "celery"
    title = "plain Celery"
    beats = True

    def task(self, app: Any, body: Callable[..., Any], *, name: str, fields: Sequence[str], **options: Any) -> Any:
        """Define it plainly."""
        del fields
        return app.task(name=name, **celery_options(options))(body)


class Deduplicating(Plain):
    """Celery told to skip what has been successful."""

    name = "deduplicate"
    title = "Celery + worker_deduplicate_successful_tasks"
    beats = False

    def prepare(self, app: Any, place: Place) -> None:
        """Switch it on."""
        del place
        app.conf.worker_deduplicate_successful_tasks = True


class RedBeat(Plain):
    """A schedule in Redis with a lock."""

    name = "redbeat"
    title = "RedBeat"
    package = "celery-redbeat"
    beats = True
    works = False
    scheduler = "redbeat.RedBeatScheduler"

    def prepare(self, app: Any, place: Place) -> None:
        """Name its Redis, and a lock that ends soon."""
        app.conf.redbeat_redis_url = place.locks
        app.conf.redbeat_lock_timeout = 6
        app.conf.beat_max_loop_interval = 2


class LeasedBeat(Plain):
    """Celery's scheduler behind a lock in Redis."""

    name = "leased-beat"
    title = "celery-leased-beat"
    package = "celery-leased-beat"
    beats = True
    works = False
    scheduler = "celery_leased_beat.scheduler.LeasedPersistentScheduler"

    def prepare(self, app: Any, place: Place) -> None:
        """Name its Redis, and a lock that ends soon."""
        app.conf.update(
            {"CELERY_LEASE_URL": place.locks, "CELERY_LEASE_LOCK_TTL": 6, "CELERY_LEASE_INTERVAL": 2},
        )
