"""The book of django-celery-beat's ``DatabaseScheduler``.

That scheduler leaves crontab entries out that are hours away from their time, by offsets of winter; a tick that was
missed meanwhile would be found when the day is over. So all enabled entries are looked at here.
"""

from typing import Any

from celery.utils.time import maybe_make_aware

from effectonce.app.beat.book import AGAIN, Book, Later
from effectonce.app.beat.entries import series_of
from effectonce.domain.series import From, Grid, Instant, Series, instant
from effectonce.domain.ticks import Missed, Planned, Tick


class DatabaseBook(Book):
    """Rows of django-celery-beat, in the memory of its scheduler."""

    def __init__(self, inner: Any, *, missed: Missed) -> None:
        super().__init__(inner, missed=missed)
        from django.db.models import Q  # noqa: PLC0415 - only where django-celery-beat is in use

        inner._get_crontab_exclude_query = lambda: Q(pk__in=[])  # noqa: SLF001 - listed in test_celery_names
        inner._initial_read = True  # noqa: SLF001 - listed in test_celery_names

    def _planned(self, entry: Any, now: Instant) -> Planned | Later:
        model = entry.model
        if not model.enabled:
            return Later(now + AGAIN)
        if model.start_time is not None and instant(maybe_make_aware(model.start_time)) > now:
            return Later(instant(maybe_make_aware(model.start_time)))
        expired = model.expires is not None and instant(maybe_make_aware(model.expires)) <= now
        if expired or (model.one_off and model.total_run_count > 0):
            entry.is_due()  # disables it in the database
            return Later(now + AGAIN)
        return self.planned(entry)

    def series(self, entry: Any) -> Series | None:
        """The instants of its schedule from its start on, where it has one; intervals count from there."""
        series = series_of(entry.schedule)
        if series is None or entry.model.start_time is None:
            return series
        start = instant(maybe_make_aware(entry.model.start_time))
        return From(Grid(series.every, start) if isinstance(series, Grid) else series, start)

    def advance(self, tick: Tick) -> None:
        """Note the run; of a one-off, in the database before the tick is marked: it has no second one."""
        entry = self.entry(tick.name)
        self.inner.reserve(entry)
        if entry.model.one_off:
            self.inner.sync()

    def abandon(self) -> None:
        """Forget what was not saved: the new leader's counts are newer."""
        self.inner._dirty.clear()  # noqa: SLF001 - listed in test_celery_names
        super().abandon()
