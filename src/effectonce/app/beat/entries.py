"""Entries of Celery's schedules, as series of instants.

What Celery's own schedules say stands in their fields, and the domain reads these. A schedule of another kind is
stepped through with its own ``remaining_estimate``, on a clock that stands still, so that the answer does not depend
on when it was asked. One that decides by itself what is due (its own ``is_due``) is asked, and its instant is the
second in which it said yes: such ticks are sent once for each yes, but two leaders may not agree on the second.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from celery import schedules

from effectonce.domain.series import (
    SECOND,
    Crontab,
    Days,
    Grid,
    Instant,
    Once,
    Series,
    Stepped,
    datetime_of,
    instant,
    instant_of,
)

_HOUR: Final = 3600 * SECOND
_DAY: Final = 24 * _HOUR
_TICK: Final = timedelta(microseconds=1)


class Asked:
    """The instant of an entry that only says whether it is due now; made anew for each look at it."""

    def __init__(self, is_due: Callable[[], Any]) -> None:
        self._is_due = is_due
        self._instant: Instant | None = None

    def latest(self, at: Instant) -> Instant | None:
        """This second, when the entry says so; it knows of no earlier one."""
        if self._instant is None and self._is_due()[0]:
            self._instant = at // SECOND * SECOND
        return self._instant if self._instant is not None and self._instant <= at else None

    def after(self, at: Instant) -> Instant | None:
        """When it wants to be asked again."""
        seconds = self._is_due()[1]
        return None if seconds is None else at + max(int(seconds * SECOND), SECOND // 10)


def series_of(schedule: Any) -> Series | None:
    """The instants of a Celery schedule; None when it decides by itself what is due."""
    kind = type(schedule)
    if isinstance(schedule, schedules.crontab) and kind.remaining_delta is schedules.crontab.remaining_delta:
        return _crontab(schedule)
    plain = schedules.schedule
    if isinstance(schedule, plain) and (kind.is_due, kind.remaining_estimate) == (
        plain.is_due,
        plain.remaining_estimate,
    ):
        return _interval(schedule)
    if getattr(schedule, "clocked_time", None) is not None:
        return Once(instant(schedule.clocked_time))
    if isinstance(schedule, (plain, schedules.crontab)) or not hasattr(schedule, "remaining_estimate"):
        return None
    return Stepped(_steps(schedule))


def _crontab(schedule: Any) -> Crontab:
    return Crontab(
        minutes=frozenset(schedule.minute),
        hours=frozenset(schedule.hour),
        weekdays=frozenset(schedule.day_of_week),
        days=frozenset(schedule.day_of_month),
        months=frozenset(schedule.month_of_year),
        zone=schedules.timezone.get_timezone(schedule.tz),
    )


def _interval(schedule: Any) -> Series:
    """The grid counts from 1970 in UTC; a relative schedule's from midnight of its own zone, its days by the wall."""
    every = max(schedule.run_every // _TICK, 1)
    if not schedule.relative:
        return Grid(every)
    zone = schedules.timezone.get_timezone(schedule.tz)
    if every >= _DAY:
        return Days(every // _DAY, zone)
    return Grid(every, instant_of(datetime(1970, 1, 1), zone))  # noqa: DTZ001 - midnight of the wall clock


def _steps(schedule: Any) -> Callable[[Instant], Instant | None]:
    """The first instant after another one, in whole seconds.

    What is computed from different starts may differ by parts of a second (the sun's hours do), and what follows right
    after the start may be passed over. So an instant is always computed from the beginning of the hour before its own.
    """

    def raw(at: Instant) -> Instant | None:
        moment = datetime_of(at).astimezone(schedules.timezone.get_timezone(schedule.tz))
        frozen = object.__new__(type(schedule))
        vars(frozen).update(vars(schedule), nowfun=lambda: moment)
        left = frozen.remaining_estimate(moment)
        return None if left is None or left <= timedelta(0) else at + left // _TICK

    def exactly(found: Instant) -> Instant:
        exact = raw(_well_before(found))
        while exact is not None and exact < found - SECOND:
            exact = raw(exact)
        return -(-(found if exact is None else exact) // SECOND) * SECOND

    def step(at: Instant) -> Instant | None:
        found = raw(_well_before(at))
        while found is not None:
            if found > at - SECOND and (whole := exactly(found)) > at:
                return whole
            found = raw(found)
        return None

    return step


def _well_before(at: Instant) -> Instant:
    return (at // _HOUR - 1) * _HOUR
