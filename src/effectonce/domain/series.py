"""The instants of a schedule: which there are, the same in every process and after every restart.

An instant is a whole number of microseconds since 1970 in UTC. A series answers two questions, the latest instant up
to a moment and the first one after it, and neither depends on when anything ran last. So a label ("the run of
10:00") and the moment at which it falls due are one thing.

Intervals lie on a fixed grid. A crontab is read on the wall clock of its time zone:

* a wall time that the clocks jump over is due as long after the jump as it lay in the gap (02:30 becomes 03:30);
* a wall time that comes twice is due the first time; where every hour is meant, both times, for the hours are two;
* two wall times that fall on one instant are one instant.
"""

from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, Protocol

Instant = int
"""Microseconds since 1970-01-01 00:00 UTC."""

SECOND: Final = 1_000_000
_MINUTE: Final = 60 * SECOND
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - the origin of wall clocks
_TICK: Final = timedelta(microseconds=1)
_SHIFT: Final = 3 * 60 * _MINUTE
"""More than clocks are ever changed by at once."""

_MONTHS: Final = 12 * 41
"""Months to look for the next or last instant: 29 February on one day of the week may be 40 years off (2072, 2112)."""


class Series(Protocol):
    """The instants of one schedule."""

    def latest(self, at: Instant) -> Instant | None:
        """The last instant that is not later than *at*; None when there is none."""
        ...

    def after(self, at: Instant) -> Instant | None:
        """The first instant later than *at*; None when there is none any more."""
        ...


@dataclass(frozen=True, slots=True)
class Grid:
    """Every *every* microseconds, counted from *anchor*."""

    every: Instant
    anchor: Instant = 0

    def latest(self, at: Instant) -> Instant:
        """See `Series.latest`."""
        return at - (at - self.anchor) % self.every

    def after(self, at: Instant) -> Instant:
        """See `Series.after`."""
        return self.latest(at) + self.every


@dataclass(frozen=True, slots=True)
class Days:
    """Midnight of the wall clock of *zone*, every *every* days counted from the first day of 1970."""

    every: int
    zone: tzinfo

    def latest(self, at: Instant) -> Instant:
        """See `Series.latest`."""
        number = (wall_clock(at, self.zone).date() - _EPOCH.date()).days // self.every + 1
        while (found := self._midnight(number)) > at:
            number -= 1
        return found

    def after(self, at: Instant) -> Instant:
        """See `Series.after`."""
        number = (wall_clock(at, self.zone).date() - _EPOCH.date()).days // self.every
        while (found := self._midnight(number)) <= at:
            number += 1
        return found

    def _midnight(self, number: int) -> Instant:
        return instant_of(_EPOCH + timedelta(days=number * self.every), self.zone)


@dataclass(frozen=True, slots=True)
class Once:
    """One instant and no other."""

    instant: Instant

    def latest(self, at: Instant) -> Instant | None:
        """See `Series.latest`."""
        return self.instant if self.instant <= at else None

    def after(self, at: Instant) -> Instant | None:
        """See `Series.after`."""
        return self.instant if self.instant > at else None


@dataclass(frozen=True, slots=True)
class From:
    """The instants of *series* that are not before *start*."""

    series: Series
    start: Instant

    def latest(self, at: Instant) -> Instant | None:
        """See `Series.latest`."""
        found = self.series.latest(at)
        return found if found is not None and found >= self.start else None

    def after(self, at: Instant) -> Instant | None:
        """See `Series.after`."""
        return self.series.after(max(at, self.start - 1))


@dataclass(frozen=True, slots=True)
class Stepped:
    """Instants that are only known one after the other: *step* gives the first one after another one (the sun's)."""

    step: Callable[[Instant], Instant | None]

    def latest(self, at: Instant) -> Instant | None:
        """See `Series.latest`; looks back a day, then further."""
        for days in (1, 32, 367, 366 * 4 + 1):
            found = self.step(at - days * 86_400 * SECOND)
            if found is not None and found <= at:
                return self._last_up_to(at, found)
        return None

    def after(self, at: Instant) -> Instant | None:
        """See `Series.after`."""
        found = self.step(at)
        return found if found is not None and found > at else None

    def _last_up_to(self, at: Instant, found: Instant) -> Instant:
        while (following := self.after(found)) is not None and following <= at:
            found = following
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Crontab:
    """Wall times of *zone* whose parts are all in these sets; Sunday is day 0 of the week."""

    minutes: frozenset[int]
    hours: frozenset[int]
    weekdays: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    zone: tzinfo

    def latest(self, at: Instant) -> Instant | None:
        """See `Series.latest`."""
        return self._search(wall_clock(at + _SHIFT, self.zone), -1, lambda found: found <= at)

    def after(self, at: Instant) -> Instant | None:
        """See `Series.after`."""
        return self._search(wall_clock(at - _SHIFT, self.zone), 1, lambda found: found > at)

    def _search(self, start: datetime, towards: int, fits: Callable[[Instant], bool]) -> Instant | None:
        """The nearest that fits, going hour by hour over the wall clock.

        The hour after one that has a fitting instant may hold a nearer one: that is where the clocks were changed.
        """
        nearest = max if towards < 0 else min
        found: Instant | None = None
        for day, hour in self._hours(start, towards):
            fitting = [each for each in self._hour(day, hour) if fits(each)]
            if found is not None:
                return nearest([found, *fitting])
            found = nearest(fitting) if fitting else None
        return found

    def _hours(self, start: datetime, towards: int) -> Iterator[tuple[date, int]]:
        """The hours that are meant, from the one of *start* on."""
        hours = sorted(self.hours, reverse=towards < 0)
        for day in self._days(start.date(), towards):
            first = day == start.date()
            yield from ((day, hour) for hour in hours if not first or (hour - start.hour) * towards >= 0)

    def _days(self, start: date, towards: int) -> Iterator[date]:
        """The days that are meant, from *start* on; a month that is not meant costs one step."""
        for number in range(_MONTHS):
            year, month = divmod(start.year * 12 + start.month - 1 + number * towards, 12)
            if month + 1 not in self.months or not date.min.year <= year <= date.max.year:
                continue
            length = monthrange(year, month + 1)[1]
            for each in sorted(self.days, reverse=towards < 0):
                if each > length or (number == 0 and (each - start.day) * towards < 0):
                    continue
                day = date(year, month + 1, each)
                if day.isoweekday() % 7 in self.weekdays:
                    yield day

    def _hour(self, day: date, hour: int) -> Iterator[Instant]:
        """The instants of one hour of the wall clock, both times where it comes twice and every hour is meant."""
        wall = datetime(day.year, day.month, day.day, hour)  # noqa: DTZ001 - a wall clock's
        for fold in (0, 1) if len(self.hours) == 24 else (0,):  # noqa: PLR2004 - hours of a day
            begins, ends = (instant_of(wall.replace(minute=minute), self.zone, fold) for minute in (0, 59))
            even = ends - begins == 59 * _MINUTE
            for minute in self.minutes:
                yield begins + minute * _MINUTE if even else instant_of(wall.replace(minute=minute), self.zone, fold)


def wall_clock(at: Instant, zone: tzinfo) -> datetime:
    """What the wall clock of *zone* shows."""
    return datetime_of(at).astimezone(zone)


def instant_of(wall: datetime, zone: tzinfo, fold: int = 0) -> Instant:
    """The instant of a wall time; one in a gap counts on from before it."""
    offset = wall.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta(0)
    return (wall - offset - _EPOCH) // _TICK


def datetime_of(at: Instant) -> datetime:
    """An instant as a datetime in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + at * _TICK


def instant(moment: datetime) -> Instant:
    """The instant of an aware datetime."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _TICK


def text_of(at: Instant) -> str:
    """An instant as text, the same everywhere: what a key and `once.effect.tick` say."""
    return datetime_of(at).isoformat()
