"""Real beats with real deaths: each tick once, none twice, none missed but where the policy says so."""

import time
from collections.abc import Iterator

import pytest

from effectonce.lab.process_tree import wait_until
from tests.integration.beat.harness import LEASE, Place, assert_once
from tests.services import Fleet

EVERY = 1.0
SCHEDULE = {"report": {"schedule": EVERY}, "rare": {"schedule": 3.0}}


@pytest.fixture
def place(fleet: Fleet) -> Iterator[Place]:
    """On Redis; the same on PostgreSQL is `test_judge`."""
    with Place(fleet, "redis", SCHEDULE, BEAT_MISSED="all") as place:
        yield place


def test_of_two_beats_one_sends_and_each_tick_comes_once(place: Place) -> None:
    """A35, A42: two schedulers, two copies of each report."""
    first, second = place.beat("a"), place.beat("b")
    place.wait_sent(5)
    assert first.has_won() != second.has_won()
    assert_once(place, "report", EVERY)
    assert_once(place, "rare", 3.0)


def test_a_killed_leader_is_followed_within_two_leases_and_nothing_comes_twice(place: Place) -> None:
    """A39: no lock is left behind."""
    beats = place.beat("a"), place.beat("b")
    leader = place.leader(*beats)
    place.wait_sent(2)
    (other,) = {*beats} - {leader}
    other.wait_ready()
    leader.kill()
    killed = time.monotonic()
    assert wait_until(other.leads, seconds=30)
    assert time.monotonic() - killed < 2 * LEASE
    place.wait_sent(4)
    assert_once(place, "report", EVERY)


def test_a_leader_that_slept_past_its_lease_sends_nothing_when_it_wakes(place: Place) -> None:
    """A38: SIGSTOP past the lease, then SIGCONT."""
    beats = place.beat("a"), place.beat("b")
    leader = place.leader(*beats)
    place.wait_sent(2)
    (other,) = {*beats} - {leader}
    other.wait_ready()
    place.wait_quiet()
    leader.pause()
    place.wait(other.leads, "the other leads")
    place.wait_sent(3)
    before = leader.log_text().count("tick.sent")
    leader.resume()
    place.wait(lambda: "term.lost" in leader.log_text(), "the old leader knows")
    place.wait_sent(3)
    assert leader.log_text().count("tick.sent") == before
    assert_once(place, "report", EVERY)


def test_a_beat_that_is_started_again_with_an_old_schedule_file_repeats_nothing(place: Place) -> None:
    beat = place.beat("a")
    beat.wait_ready()
    place.wait(beat.leads, "it leads")
    kept = place.save(beat)
    place.wait_sent(3)
    beat.kill()
    place.restore(kept)
    beat.start()
    place.wait_sent(4)
    assert_once(place, "report", EVERY)
    assert_once(place, "rare", 3.0)


def test_a_leader_that_is_asked_to_end_hands_over_at_once(place: Place) -> None:
    """A37: a rolling deployment starts the new one, then ends the old one."""
    old = place.beat("a")
    place.wait(old.leads, "it leads")
    new = place.beat("b").wait_ready()
    old.stop()
    stopped = time.monotonic()
    assert "resign" in old.log_text() or "stopped" in old.log_text()
    place.wait(new.leads, "the new one leads")
    assert time.monotonic() - stopped < LEASE
    place.wait_sent(3)
    assert_once(place, "report", EVERY)
