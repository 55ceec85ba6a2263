"""RedBeat's scheduler, the real one, under a term: entries that anybody changes in Redis at any time."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from redbeat import RedBeatSchedulerEntry

from tests.integration.beat.ticking import Ticked, beating, project

WRAPS = "redbeat.RedBeatScheduler"


@pytest.fixture
def app(redis_url: str) -> Celery:
    return project(
        redis_url,
        redis_url,
        WRAPS,
        redbeat_redis_url=redis_url,
        redbeat_redis_options={},
        beat_max_loop_interval=1,
        beat_schedule={"static": {"task": "work", "schedule": 2.0}},
    )


@pytest.fixture
def beat(app: Celery) -> Iterator[Ticked]:
    with beating(app) as ticked:
        yield ticked


def entry(app: Celery, name: str, every: Any, **options: Any) -> RedBeatSchedulerEntry:
    """Store an entry as a user of RedBeat does."""
    made = RedBeatSchedulerEntry(name, "work", schedule(every, app=app), app=app, **options)
    return made.save()


def read(app: Celery, name: str) -> RedBeatSchedulerEntry:
    return RedBeatSchedulerEntry.from_key(f"redbeat:{name}", app=app)


def seconds(instants: list[str]) -> list[float]:
    return [datetime.fromisoformat(each).timestamp() for each in instants]


def test_static_entries_come_on_the_grid_each_instant_once(beat: Ticked) -> None:
    beat.until(lambda: len(beat.sent("static")) >= 3)
    found = seconds(beat.instants("static"))
    assert all(each % 2 == 0 for each in found)
    assert found == [found[0] + 2 * number for number in range(len(found))]


def test_its_last_run_is_the_instant_so_that_nothing_drifts(beat: Ticked, app: Celery) -> None:
    beat.until(lambda: len(beat.sent("static")) >= 2)
    stored = read(app, "static")
    assert stored.last_run_at.timestamp() == seconds(beat.instants("static"))[-1]
    assert stored.total_run_count == len(beat.sent("static"))


def test_an_entry_that_appears_is_sent_and_one_that_vanishes_is_not(beat: Ticked, app: Celery) -> None:
    beat.until(lambda: bool(beat.sent("static")))
    made = entry(app, "late", 1)
    beat.until(lambda: len(beat.sent("late")) >= 2)
    made.delete()
    beat.during(0.2)
    before = len(beat.sent("late"))
    beat.during(2.2)
    assert len(beat.sent("late")) == before


def test_an_entry_that_changes_follows_its_new_schedule(beat: Ticked, app: Celery) -> None:
    made = entry(app, "changing", 1)
    beat.until(lambda: len(beat.sent("changing")) >= 2)
    made.schedule, made.args = schedule(3, app=app), ["new"]
    made.save()
    beat.during(0.2)
    before = len(beat.sent("changing"))
    beat.until(lambda: len(beat.sent("changing")) >= before + 2)
    assert all(each % 3 == 0 for each in seconds(beat.instants("changing"))[before:])


def test_a_disabled_entry_is_not_sent(beat: Ticked, app: Celery) -> None:
    entry(app, "off", 1, enabled=False)
    beat.until(lambda: len(beat.sent("static")) >= 2)
    assert beat.sent("off") == []


def test_a_standby_writes_nothing_into_the_schedule(beat: Ticked, app: Celery) -> None:
    """H16: it would write the shared last run, and the leader would never be due."""
    beat.until(lambda: bool(beat.sent("static")))
    with beating(app) as standby:
        for _ in range(20):
            standby.scheduler.tick()
        assert standby.scheduler._reign is None
    beat.until(lambda: len(beat.sent("static")) >= 2)
    found = seconds(beat.instants("static"))
    assert found == [found[0] + 2 * number for number in range(len(found))]


def test_a_crontab_of_another_time_is_left_alone(beat: Ticked, app: Celery) -> None:
    yearly = crontab(minute=0, hour=0, day_of_month=29, month_of_year=2, app=app)
    made = RedBeatSchedulerEntry("leap", "work", yearly, app=app)
    made.save()
    beat.until(lambda: len(beat.sent("static")) >= 2)
    assert beat.sent("leap") == []
