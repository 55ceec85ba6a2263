"""What Celery's own schedules become as series of instants, and what a tick's message says."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import ephem
import pytest
from celery import Celery
from celery.beat import ScheduleEntry
from celery.schedules import crontab, schedstate, schedule, solar

from effectonce.app.beat.book import message_options, missed_of
from effectonce.app.beat.entries import Asked, series_of
from effectonce.domain.series import SECOND, Crontab, Days, Grid, Series, Stepped, datetime_of, instant
from effectonce.domain.ticks import Missed, Tick
from tests.integration.beat.ticking import Ticked, beating, project

JUNE = datetime(2026, 6, 21, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def app() -> Celery:
    app = Celery("entries", broker="memory://", set_as_current=False)
    app.conf.timezone = "Europe/Berlin"
    return app


def found(said: Any) -> Series:
    series = series_of(said)
    assert series is not None
    return series


def following(series: Series, start: datetime, number: int) -> list[datetime]:
    instants, at = [], instant(start)
    for _ in range(number):
        after = series.after(at)
        assert after is not None
        instants.append(datetime_of(after))
        at = after
    return instants


def test_a_crontab_is_read_on_the_wall_clock_of_the_app(app: Celery) -> None:
    series = found(crontab(minute=30, hour=2, app=app))
    assert isinstance(series, Crontab)
    (day_of_change, day_after) = following(series, datetime(2026, 3, 28, 12, tzinfo=UTC), 2)
    assert (day_of_change.astimezone(BERLIN).hour, day_after.astimezone(BERLIN).hour) == (3, 2)


def test_an_interval_lies_on_a_grid_and_a_relative_one_on_that_of_its_day(app: Celery) -> None:
    assert found(schedule(timedelta(seconds=90), app=app)) == Grid(90 * SECOND)
    hourly = found(schedule(timedelta(hours=5), relative=True, app=app))
    assert isinstance(hourly, Grid)
    assert datetime_of(hourly.anchor).astimezone(BERLIN).hour == 0
    assert found(schedule(timedelta(days=2), relative=True, app=app)) == Days(2, BERLIN)


@pytest.mark.parametrize("event", ["sunrise", "sunset", "solar_noon", "dawn_civil"])
def test_the_sun_gives_the_same_instants_whenever_it_is_asked(app: Celery, event: str) -> None:
    """Two leaders ask at different moments, and must mean one instant."""
    series = found(solar(event, 52.5, 13.4, app=app))
    assert isinstance(series, Stepped)
    week = following(series, JUNE, 7)
    assert all(timedelta(hours=23) < later - each < timedelta(hours=25) for each, later in pairwise(week))
    for each in week:
        at = instant(each)
        for off in (1, 7, 1801, 40_000):
            assert series.latest(at + off * SECOND) == at
            assert series.after(at - off * SECOND) == at


def test_the_sun_rises_when_the_almanac_says(app: Celery) -> None:
    (rises,) = following(found(solar("sunrise", 52.5, 13.4, app=app)), JUNE, 1)
    place = ephem.Observer()
    place.lat, place.lon, place.pressure, place.horizon = "52.5", "13.4", 0, "-0:34"
    expected = place.next_rising(ephem.Sun(), start=ephem.Date(JUNE.replace(tzinfo=None))).datetime()
    assert abs(rises - expected.replace(tzinfo=UTC)) < timedelta(seconds=2)


def test_a_sun_that_does_not_set_has_no_tick_until_it_does(app: Celery) -> None:
    """Tromsø in summer."""
    (first,) = following(found(solar("sunset", 69.6, 18.9, app=app)), JUNE, 1)
    assert datetime(2026, 7, 20, tzinfo=UTC) < first < datetime(2026, 8, 5, tzinfo=UTC)


class WhenAsked(schedule):
    """Decides by itself what is due."""

    def is_due(self, last_run_at: datetime) -> Any:
        del last_run_at
        return schedstate(is_due=True, next=5)


def test_a_schedule_that_decides_by_itself_is_asked_for_the_second(app: Celery) -> None:
    said = WhenAsked(run_every=timedelta(seconds=5), app=app)
    assert series_of(said) is None
    entry = ScheduleEntry(name="own", task="work", schedule=said, app=app)
    series, now = Asked(entry.is_due), instant(JUNE) + 123
    assert series.latest(now) == instant(JUNE)
    assert series.after(now) == now + 5 * SECOND


def entry_of(app: Celery, **options: Any) -> ScheduleEntry:
    return ScheduleEntry(name="report", task="work", schedule=schedule(60, app=app), options=options, app=app)


def test_an_end_in_seconds_counts_from_the_instant(app: Celery) -> None:
    tick = Tick(group="g", name="report", instant=instant(JUNE))
    said = message_options(entry_of(app, expires=90, effectonce_missed="all", queue="slow"), tick)
    assert said["expires"] == JUNE + timedelta(seconds=90)
    assert said["queue"] == "slow"
    assert said["task_id"] == tick.task_id
    assert "effectonce_missed" not in said
    assert said["headers"]["effectonce_tick"] == JUNE.isoformat()


def test_an_entry_says_what_becomes_of_its_missed_ticks(app: Celery, caplog: pytest.LogCaptureFixture) -> None:
    assert missed_of(entry_of(app, effectonce_missed="skip"), Missed.LATEST) is Missed.SKIP
    assert missed_of(entry_of(app, headers={"effectonce_missed": "all"}), Missed.LATEST) is Missed.ALL
    assert missed_of(entry_of(app), Missed.SKIP) is Missed.SKIP
    with caplog.at_level(logging.ERROR, logger="effectonce"):
        assert missed_of(entry_of(app, effectonce_missed="some"), Missed.LATEST) is Missed.LATEST
    assert "is none of latest, all, skip" in caplog.text


@pytest.fixture
def ticked(redis_url: str) -> Iterator[Ticked]:
    """A beat over Celery's own scheduler, whose schedule a test changes."""
    steady = {"steady": {"task": "work", "schedule": 1.0}}
    with beating(project(redis_url, redis_url, "celery.beat:Scheduler", beat_schedule=steady)) as beat:
        beat.until(lambda: bool(beat.sent("steady")))
        yield beat


def test_entries_appear_change_and_vanish_while_beat_runs(ticked: Ticked) -> None:
    inner = ticked.inner
    inner.add(name="late", task="work", schedule=schedule(1.0, app=ticked.app))
    ticked.until(lambda: len(ticked.sent("late")) >= 2)
    inner.add(name="late", task="work", schedule=schedule(2.0, app=ticked.app))
    before = len(ticked.sent("late"))
    ticked.until(lambda: len(ticked.sent("late")) >= before + 2)
    changed = [datetime.fromisoformat(each).timestamp() for each in ticked.instants("late")[before:]]
    assert all(each % 2 == 0 for each in changed[1:])
    del inner.schedule["late"]
    ticked.during(0.6)
    gone, steady = len(ticked.sent("late")), len(ticked.sent("steady"))
    ticked.until(lambda: len(ticked.sent("steady")) >= steady + 2)
    assert len(ticked.sent("late")) == gone


def test_beat_never_rests_longer_than_its_longest_interval(redis_url: str) -> None:
    yearly = {"yearly": {"task": "work", "schedule": crontab(minute=0, hour=0, day_of_month=29, month_of_year=2)}}
    app = project(redis_url, redis_url, "celery.beat:Scheduler", beat_schedule=yearly, beat_max_loop_interval=0.25)
    with beating(app) as beat:
        beat.until(lambda: beat.scheduler._reign is not None)
        assert 0 < beat.scheduler.tick() <= 0.25


def test_entries_of_two_schedules_with_one_name_do_not_meet(redis_url: str) -> None:
    """One ledger, two projects: each has its own report, with other arguments."""
    every = [{"report": {"task": "work", "schedule": 1.0, "args": (place,)}} for place in ("north", "south")]
    apps = [
        project(redis_url, redis_url, "celery.beat:Scheduler", name=name, beat_schedule=said)
        for name, said in zip(("one", "two"), every, strict=True)
    ]
    with beating(apps[0]) as one, beating(apps[1]) as two:

        def both() -> bool:
            two.scheduler.tick()
            return all(len(of_one(one, place)) >= 2 for place in ("north", "south"))

        one.until(both)
        north, south = of_one(one, "north"), of_one(one, "south")
    assert len(set(north)) == len(north)
    assert len(set(south)) == len(south)
    assert set(north) & set(south)


def of_one(beat: Ticked, place: str) -> list[str]:
    return [each["effectonce_tick"] for each in beat.sent("report") if place in each["argsrepr"]]
