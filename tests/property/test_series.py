"""Laws of schedules: every instant is on the series, none is passed over, whatever the zone does with its clocks."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from celery import Celery
from celery.schedules import crontab
from hypothesis import given
from hypothesis import strategies as st

from effectonce.domain.series import (
    SECOND,
    Crontab,
    Days,
    From,
    Grid,
    Once,
    Series,
    Stepped,
    datetime_of,
    instant,
    instant_of,
    wall_clock,
)

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/Sao_Paulo"]
YEAR = 366 * 86_400 * SECOND
MOMENTS = st.integers(instant(datetime(2016, 1, 1, tzinfo=UTC)), instant(datetime(2036, 1, 1, tzinfo=UTC)))
CHANGES = st.sampled_from(
    [
        datetime(2026, 3, 29, 1, tzinfo=UTC),  # Berlin, forward
        datetime(2026, 10, 25, 1, tzinfo=UTC),  # Berlin, back
        datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe, half an hour back
        datetime(2017, 10, 15, 3, tzinfo=UTC),  # Sao Paulo, forward at midnight
    ]
).flatmap(lambda change: st.integers(-3 * 3600, 3 * 3600).map(lambda off: instant(change) + off * SECOND))
NEAR = st.one_of(MOMENTS, CHANGES)


def some(low: int, high: int) -> st.SearchStrategy[frozenset[int]]:
    whole = frozenset(range(low, high + 1))
    return st.one_of(st.just(whole), st.frozensets(st.integers(low, high), min_size=1, max_size=4))


CRONTABS = st.builds(
    Crontab,
    minutes=some(0, 59),
    hours=some(0, 23),
    weekdays=some(0, 6),
    days=some(1, 28),
    months=some(1, 12),
    zone=st.sampled_from(ZONES).map(ZoneInfo),
)
GRIDS = st.builds(Grid, st.integers(1, 10**12), st.integers(-(10**15), 10**15))
DAYS = st.builds(Days, st.integers(1, 40), st.sampled_from(ZONES).map(ZoneInfo))
SERIES = st.one_of(CRONTABS, GRIDS, DAYS, st.builds(From, CRONTABS, NEAR), st.builds(Once, NEAR))


@given(series=SERIES, at=NEAR)
def test_latest_and_after_enclose_a_moment_with_nothing_between(series: Series, at: int) -> None:
    latest, following = series.latest(at), series.after(at)
    if latest is not None:
        assert latest <= at
        assert series.latest(latest) == latest
        assert series.after(latest) == following
    if following is not None:
        assert following > at
        assert series.latest(following) == following
        assert series.latest(following - 1) == latest


@given(series=CRONTABS, at=NEAR)
def test_steps_backwards_and_forwards_meet_the_same_instants(series: Crontab, at: int) -> None:
    back = [at + 1]
    for _ in range(8):
        found = series.latest(back[-1] - 1)
        if found is None:
            break
        back.append(found)
    forth = [back[-1]] if len(back) > 1 else []
    while forth and len(forth) < len(back) - 1:
        following = series.after(forth[-1])
        assert following is not None
        forth.append(following)
    assert forth == back[:0:-1]


@given(series=CRONTABS, at=NEAR)
def test_what_a_crontab_gives_reads_on_the_wall_clock_as_it_says(series: Crontab, at: int) -> None:
    """But for a time that the clocks jumped over."""
    found = series.after(at)
    assert found is not None
    wall = wall_clock(found, series.zone)
    jumped = instant_of(wall.replace(tzinfo=None) - timedelta(hours=3), series.zone) != found - 3 * 3600 * SECOND
    fits = wall.minute in series.minutes and wall.hour in series.hours and wall.day in series.days
    assert fits or jumped


@given(ours=CRONTABS.filter(lambda crontab: crontab.zone == ZoneInfo("UTC")), at=MOMENTS)
def test_without_changes_of_the_clock_instants_are_those_of_celery(ours: Crontab, at: int) -> None:
    app = Celery("x", set_as_current=False)
    moment = datetime_of(at - at % (60 * SECOND))
    sets = (set(each) for each in (ours.minutes, ours.hours, ours.weekdays, ours.days, ours.months))
    theirs = crontab(*sets, app=app, nowfun=lambda: moment)
    assert ours.after(instant(moment)) == instant(moment + theirs.remaining_estimate(moment))


@given(every=st.integers(1, 3600), at=MOMENTS)
def test_a_series_that_is_only_stepped_through_is_the_same_series(every: int, at: int) -> None:
    grid = Grid(every * SECOND * 60)
    stepped = Stepped(grid.after)
    assert stepped.latest(at) == grid.latest(at)
    assert stepped.after(at) == grid.after(at)


def berlin(minutes: set[int], hours: set[int]) -> Crontab:
    every = {"weekdays": frozenset(range(7)), "days": frozenset(range(1, 32)), "months": frozenset(range(1, 13))}
    return Crontab(minutes=frozenset(minutes), hours=frozenset(hours), zone=ZoneInfo("Europe/Berlin"), **every)


def within(series: Series, start: datetime, hours: int) -> list[str]:
    found, end = [], instant(start) + hours * 3600 * SECOND
    at = series.after(instant(start) - 1)
    while at is not None and at < end:
        found.append(datetime_of(at).strftime("%H:%M"))
        at = series.after(at)
    return found


SPRING, AUTUMN = datetime(2026, 3, 28, 23, tzinfo=UTC), datetime(2026, 10, 24, 22, tzinfo=UTC)


def test_a_time_that_the_clocks_jump_over_is_due_once_after_the_jump() -> None:
    """A40."""
    assert within(berlin({30}, {2}), SPRING, 23) == ["01:30"]


def test_a_time_that_comes_twice_is_due_once() -> None:
    """A40."""
    assert within(berlin({30}, {2}), AUTUMN, 25) == ["00:30"]


def test_every_hour_is_every_hour_also_when_the_clocks_change() -> None:
    """A40."""
    hours = set(range(24))
    assert len(within(berlin({0}, hours), SPRING, 23)) == 23
    assert len(within(berlin({0}, hours), AUTUMN, 25)) == 25
    assert within(berlin({0, 30}, hours), AUTUMN, 3) == ["22:00", "22:30", "23:00", "23:30", "00:00", "00:30"]


def test_a_job_at_two_and_one_at_three_fall_together_on_the_day_of_the_jump() -> None:
    assert within(berlin({30}, {2, 3}), SPRING, 23) == ["01:30"]


@pytest.mark.parametrize(("start", "hours"), [(SPRING, 23), (AUTUMN, 25)])
def test_days_are_days_of_the_wall_clock(start: datetime, hours: int) -> None:
    midnights = Days(1, ZoneInfo("Europe/Berlin"))
    assert midnights.latest(instant(start)) == instant(start)
    assert midnights.after(instant(start)) == instant(start) + hours * 3600 * SECOND


def test_the_29th_of_february_is_found_from_anywhere() -> None:
    every = {"weekdays": frozenset(range(7)), "minutes": frozenset({0}), "hours": frozenset({0})}
    leap = Crontab(days=frozenset({29}), months=frozenset({2}), zone=UTC, **every)
    at = instant(datetime(2097, 1, 1, tzinfo=UTC))
    assert datetime_of(leap.after(at) or 0).year == 2104
    assert datetime_of(leap.latest(at) or 0).year == 2096


@pytest.mark.parametrize(
    ("date", "weekday", "at", "years"),
    [((1, 1), 2, 2019, (2013, 2030)), ((29, 2), 1, 2073, (2072, 2112)), ((29, 2), 1, 2112, (2072, 2112))],
)
def test_a_date_on_one_day_of_the_week_is_found_however_far_off(
    date: tuple[int, int], weekday: int, at: int, years: tuple[int, int]
) -> None:
    """A schedule whose next instant is not found counts as over, and is never sent again."""
    rare = Crontab(
        days=frozenset({date[0]}),
        months=frozenset({date[1]}),
        weekdays=frozenset({weekday}),
        hours=frozenset({0}),
        minutes=frozenset({0}),
        zone=UTC,
    )
    moment = instant(datetime(at, 1, 1, tzinfo=UTC))
    found = (rare.latest(moment - 1), rare.after(moment))
    assert tuple(datetime_of(each or 0).year for each in found) == years
