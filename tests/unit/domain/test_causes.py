"""Why a message stands where its effect has been carried out already, and what an observed one would have met."""

import dataclasses
from typing import Any

import pytest

from effectonce.domain.causes import Cause, cause_of
from effectonce.domain.claims import Busy, Continued, Held, Poison, Replay, Reused
from effectonce.domain.deliveries import Delivery
from effectonce.domain.sightings import SUPPRESSED, Sighting, Would, would


@pytest.mark.parametrize(
    ("said", "own", "lives", "cause"),
    [
        ({}, True, False, Cause.CALLER),
        ({}, False, True, Cause.CALLER),
        ({"flagged": True}, True, False, Cause.REDELIVERY),
        ({"flagged": True}, False, True, Cause.REDELIVERY),
        ({"flagged": True}, False, False, Cause.CALLER),
        ({"flagged": True, "is_timed": True}, True, True, Cause.VISIBILITY),
        ({"flagged": True, "is_timed": True}, True, False, Cause.REDELIVERY),
        ({"is_timed": True}, True, True, Cause.CALLER),
        ({"by_beat": True}, False, False, Cause.BEAT),
        ({"by_beat": True, "flagged": True}, True, False, Cause.REDELIVERY),
        ({"relayed": True, "flagged": True, "by_beat": True}, True, True, Cause.RELAY),
        ({"cause": "takeover", "relayed": True}, True, True, Cause.TAKEOVER),
    ],
)
def test_the_cause_is_told_from_what_the_message_says_and_whom_it_met(
    said: dict[str, Any], own: bool, lives: bool, cause: Cause
) -> None:
    assert cause_of(Delivery(task="t", **said), own=own, lives=lives) is cause


@pytest.mark.parametrize(
    ("on_busy", "own", "must_wait", "expected"),
    [
        ("skip", False, False, Would.SKIP),
        ("raise", False, False, Would.BUSY),
        ("defer", False, False, Would.DEFER),
        ("wait", False, False, Would.DEFER),
        ("skip", True, False, Would.DEFER),
        ("raise", False, True, Would.DEFER),
    ],
)
def test_a_busy_call_would_have_met_its_policy(on_busy: str, own: bool, must_wait: bool, expected: Would) -> None:
    assert would(Busy(wait=None, own=own), on_duplicate="replay", on_busy=on_busy, must_wait=must_wait) is expected


@pytest.mark.parametrize(
    ("met", "on_duplicate", "expected"),
    [
        (Replay, "replay", Would.REPLAY),
        (Replay, "raise", Would.RAISE),
        (Continued, "raise", Would.REPLAY),
        (Reused, "replay", Would.REUSE),
        (Poison, "replay", Would.HOLD),
        (Held, "raise", Would.HOLD),
    ],
)
def test_a_call_that_meets_an_entry_would_have_been_answered(met: Any, on_duplicate: str, expected: Would) -> None:
    entry: Any = None
    assert would(met(entry=entry), on_duplicate=on_duplicate, on_busy="skip", must_wait=False) is expected


def test_only_a_call_that_is_put_off_is_not_suppressed() -> None:
    assert Would.DEFER not in SUPPRESSED
    assert {Would.REPLAY, Would.SKIP, Would.HOLD} <= SUPPRESSED


def test_a_sighting_is_marked_by_what_would_have_happened_and_to_whom() -> None:
    seen = Sighting(digest=b"d" * 16, key="k", task="t", task_id="i", would=Would.REPLAY, again=False)
    others = [
        dataclasses.replace(seen, digest=b"e" * 16),
        dataclasses.replace(seen, would=Would.SKIP),
        dataclasses.replace(seen, again=True),
    ]
    assert len({each.mark for each in (seen, *others)}) == 4
    assert dataclasses.replace(seen, task_id="j", times=5).mark == seen.mark
    assert len(seen.mark) == 16
    assert (seen.times, seen.first, seen.last) == (1, 0.0, 0.0)
