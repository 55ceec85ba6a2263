"""Beats inside of workers (``worker -B``), and what the tasks that they send make of their tick."""

from collections.abc import Iterator
from datetime import datetime

import pytest
from celery import Celery

from tests.integration.beat.harness import Place
from tests.services import Fleet


@pytest.fixture
def place(fleet: Fleet) -> Iterator[Place]:
    with Place(fleet, "redis", {"report": {"schedule": 1.0}}, BEAT_MISSED="all") as place:
        yield place


def notes(place: Place) -> list[str]:
    """What bodies noted: entry and instant."""
    file = place.folder / "notes"
    return file.read_text().splitlines() if file.exists() else []


def test_beats_in_two_workers_send_each_tick_once_and_its_body_knows_the_instant(place: Place) -> None:
    """A36."""
    for name in ("a", "b"):
        schedule = str(place.folder / f"{name}.schedule")
        place.worker(name, pool="prefork", concurrency=1, options=["-B", "--scheduler", "once", "-s", schedule])
    place.wait(lambda: len(notes(place)) >= 5, "five bodies ran")
    ran = notes(place)
    instants = [datetime.fromisoformat(line.split()[1]).timestamp() for line in ran]
    assert sorted(set(instants)) == sorted(instants)
    assert sorted(instants) == [min(instants) + number for number in range(len(instants))]
    logs = place.logs()
    assert logs.count("term.won") == 1


def test_a_tick_that_was_sent_twice_takes_effect_once_and_two_entries_at_one_instant_are_two(place: Place) -> None:
    """The one who sent it died before it could say so."""
    app = Celery(broker=place.env["BEAT_BROKER"], set_as_current=False)
    ten, later = "2026-11-29T10:00:00+00:00", "2026-11-29T10:01:00+00:00"
    for entry, tick in (("report#1", ten), ("report#1", ten), ("other#2", ten), ("report#1", later)):
        app.send_task("work", (entry,), headers={"effectonce_tick": tick, "effectonce_entry": entry})
    place.worker("a", pool="solo")
    place.wait(lambda: len(notes(place)) >= 3 and not place.queue.llen("celery"), "all are worked on")
    place.wait(lambda: "effect.replayed" in place.logs() or len(notes(place)) > 3, "the repeated one is seen")
    assert sorted(notes(place)) == [
        "other#2 2026-11-29T10:00:00+00:00",
        "report#1 2026-11-29T10:00:00+00:00",
        "report#1 2026-11-29T10:01:00+00:00",
    ]
    app.close()
