"""A beat dies at each point between a tick and its mark: the tick is sent by its next life, under the same id."""

from contextlib import ExitStack

import pytest

from effectonce.lab.process_tree import wait_until
from effectonce.ports import is_transactional
from tests.crash.test_matrix import TICKING
from tests.integration.beat.harness import Beat, Place
from tests.services import Fleet

EVERY = 1.0


def dying(stack: ExitStack, fleet: Fleet, ledger: str, point: str) -> tuple[Place, Beat]:
    """A beat that dies at the second passing of *point*, the first of which may be the note of a new entry."""
    place = stack.enter_context(Place(fleet, ledger, {"report": {"schedule": EVERY}}, BEAT_MISSED="all"))
    death = place.folder / "death"
    return place, place.beat("a", EFFECTONCE_CRASH=f"{point}:2", EFFECTONCE_CRASH_ONCE=str(death))


ALONE = {"tick.send.before", "tick.send.after"}
"""Points of a beat that sends by itself; with a SQL ledger the outbox does."""

WITH_OUTBOX = {"outbox.before", "outbox.after", "dispatch.before", "dispatch.after"}


AROUND_COMMIT = ["outbox.after", "tick.claim.after"]


def points(ledger: str) -> list[str]:
    """All that there are; of the two SQL databases one has them all, and the quick one those around the commit."""
    if ledger == "sqlite":
        return AROUND_COMMIT
    return sorted(TICKING if ledger == "redis" else TICKING - ALONE | WITH_OUTBOX)


@pytest.fixture(params=["redis", "sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def ledger(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_beat_that_dies_at_any_point_loses_no_tick_and_sends_none_under_two_ids(fleet: Fleet, ledger: str) -> None:
    """H16."""
    with ExitStack() as stack:
        beats = {point: dying(stack, fleet, ledger, point) for point in points(ledger)}
        for point, (place, beat) in beats.items():
            assert wait_until((place.folder / "death").exists, seconds=60), f"nobody died at {point}"
            beat.kill()
            beat.start()
        for point, (place, _) in beats.items():
            place.wait_sent(4)
            if is_transactional(place.ledger):
                outbox = place.ledger.outbox
                place.wait(lambda outbox=outbox: outbox.depth().ready == 0, "what the dead have left is sent")
            sent = {(each.instant.timestamp(), each.task_id) for each in place.sent()}
            instants = sorted(instant for instant, _ in sent)
            expected = [instants[0] + EVERY * number for number in range(len(instants))]
            assert instants == expected, f"{point}: {instants}\n{place.logs()[-4000:]}"
