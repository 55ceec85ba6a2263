"""Who may carry out an effect, and what a delivery does that may not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effectonce.domain.claims import (
    Busy,
    Claim,
    Continued,
    Entry,
    Granted,
    Held,
    Poison,
    Refused,
    Replay,
    Reused,
    State,
    admit,
    is_takeover,
    judge,
    next_fence,
    same_arguments,
)

NOW = 1_800_000_000_000_000
"""The ledger's clock, microseconds."""

ENDED = (State.COMPLETED, State.FAILED)
HELD = (State.UNKNOWN, State.POISONED)


def claim_of(**changes: Any) -> Claim:
    claim = Claim(
        digest=b"d" * 16,
        key="charge:7",
        attempt=b"second##",
        identity=b"message two#####",
        task_id="two",
        fingerprint=b"seven",
        lease=30.0,
        max_takeovers=3,
    )
    return replace(claim, **changes)


def entry_in(state: State, **changes: Any) -> Entry:
    entry = Entry(
        digest=b"d" * 16,
        key="charge:7",
        state=state,
        fence=NOW - 1000,
        attempt=b"first###",
        identity=b"message one#####",
        task_id="one",
        fingerprint=b"seven",
        lease_left=10.0,
        deaths=0,
        attempts=1,
        retries=0,
        continued=False,
        handed_over=False,
        result=b"result",
        result_kept=True,
        since=NOW / 1_000_000,
    )
    return replace(entry, **changes)


OWN = {"identity": claim_of().identity}
OTHERS = {"fingerprint": b"eight"}


def test_an_effect_that_nobody_knows_is_granted() -> None:
    granted = admit(None, claim_of(), NOW)
    assert granted == Granted(digest=b"d" * 16, attempt=b"second##", fence=NOW, takeover=False, deaths=0, attempts=1)


def test_a_released_effect_is_granted_with_what_it_has_been_through() -> None:
    released = entry_in(State.RELEASED, deaths=2, attempts=4)
    granted = admit(released, claim_of(), NOW)
    assert isinstance(granted, Granted)
    assert (granted.fence, granted.takeover, granted.deaths, granted.attempts) == (NOW, False, 2, 5)


def test_a_released_effect_may_be_claimed_with_other_arguments() -> None:
    """It failed, so nothing of it stands (rule 8)."""
    assert isinstance(admit(entry_in(State.RELEASED, **OTHERS), claim_of(), NOW), Granted)


def test_a_released_effect_whose_holders_died_too_often_is_refused() -> None:
    assert isinstance(admit(entry_in(State.RELEASED, deaths=3), claim_of(max_takeovers=3), NOW), Refused)
    assert isinstance(admit(entry_in(State.RELEASED, deaths=2), claim_of(max_takeovers=3), NOW), Granted)


@pytest.mark.parametrize("lease_left", [0.0, -0.001, -1e9])
def test_a_claim_whose_lease_has_ended_is_taken_over_and_a_death_counted(lease_left: float) -> None:
    granted = admit(entry_in(State.CLAIMED, lease_left=lease_left, deaths=1, attempts=2), claim_of(), NOW)
    assert isinstance(granted, Granted)
    assert (granted.takeover, granted.deaths, granted.attempts) == (True, 2, 3)


def test_a_running_claim_is_refused() -> None:
    entry = entry_in(State.CLAIMED, lease_left=0.001)
    assert admit(entry, claim_of(), NOW) == Refused(entry=entry)


def test_a_claim_is_not_taken_over_for_other_arguments() -> None:
    assert isinstance(admit(entry_in(State.CLAIMED, lease_left=-1.0, **OTHERS), claim_of(), NOW), Refused)


@pytest.mark.parametrize(("most", "deaths", "allowed"), [(1, 0, False), (2, 0, True), (2, 1, False), (3, 1, True)])
def test_the_last_death_is_not_followed_by_a_takeover(most: int, deaths: int, *, allowed: bool) -> None:
    """`max_takeovers` deaths poison: the one that would be counted now is among them (rule 12)."""
    entry = entry_in(State.CLAIMED, lease_left=-1.0, deaths=deaths)
    assert is_takeover(entry, claim_of(max_takeovers=most)) is allowed


def test_a_retry_re_enters_a_running_claim_by_its_fence() -> None:
    entry = entry_in(State.CLAIMED, deaths=1)
    granted = admit(entry, claim_of(reenter=entry.fence), NOW)
    assert isinstance(granted, Granted)
    assert (granted.fence, granted.takeover, granted.deaths, granted.attempts) == (NOW, False, 1, 2)


def test_a_retry_re_enters_also_when_the_lease_has_ended_and_no_death_is_counted() -> None:
    entry = entry_in(State.CLAIMED, lease_left=-1.0, deaths=2)
    granted = admit(entry, claim_of(reenter=entry.fence), NOW)
    assert isinstance(granted, Granted)
    assert (granted.takeover, granted.deaths) == (False, 2)


def test_a_retry_with_another_fence_is_one_like_any_other() -> None:
    """Hole H6: another attempt has held it since."""
    entry = entry_in(State.CLAIMED)
    assert isinstance(admit(entry, claim_of(reenter=entry.fence - 1), NOW), Refused)


@pytest.mark.parametrize("state", [*ENDED, *HELD])
def test_a_fence_opens_nothing_that_has_ended_or_is_held(state: State) -> None:
    entry = entry_in(state, lease_left=-1.0)
    assert isinstance(admit(entry, claim_of(reenter=entry.fence), NOW), Refused)
    assert isinstance(admit(entry, claim_of(attempt=entry.attempt), NOW), Refused)


def test_the_holder_that_asks_again_gets_the_same_grant() -> None:
    entry = entry_in(State.CLAIMED, deaths=1, attempts=2)
    granted = admit(entry, claim_of(attempt=entry.attempt), NOW)
    assert isinstance(granted, Granted)
    assert (granted.fence, granted.deaths, granted.attempts) == (entry.fence, 1, 2)


def test_the_holder_that_asks_again_after_its_lease_is_a_takeover_like_any_other() -> None:
    """Whether it died in between, nobody knows."""
    entry = entry_in(State.CLAIMED, lease_left=-1.0)
    granted = admit(entry, claim_of(attempt=entry.attempt), NOW)
    assert isinstance(granted, Granted)
    assert (granted.fence, granted.takeover, granted.deaths) == (NOW, True, 1)


@pytest.mark.parametrize(("previous", "expected"), [(0, NOW), (NOW - 1, NOW), (NOW, NOW + 1), (2 * NOW, 2 * NOW + 1)])
def test_a_fence_is_the_clock_or_one_more_than_the_last(previous: int, expected: int) -> None:
    assert next_fence(previous, NOW) == expected


@pytest.mark.parametrize(
    ("recorded", "received", "same"),
    [(b"a", b"a", True), (b"a", b"b", False), (b"", b"b", True), (b"a", b"", True), (b"", b"", True)],
)
def test_a_fingerprint_that_was_not_taken_agrees_with_all(recorded: bytes, received: bytes, *, same: bool) -> None:
    assert same_arguments(entry_in(State.CLAIMED, fingerprint=recorded), claim_of(fingerprint=received)) is same


def verdict(entry: Entry | None, claim: Claim | None = None) -> object:
    return judge(Refused(entry=entry), claim or claim_of())


def test_a_key_that_somebody_holds_uncommitted_is_busy_for_nobody_knows_how_long() -> None:
    assert verdict(None) == Busy(wait=None, own=False)


@pytest.mark.parametrize("state", ENDED)
def test_another_message_gets_the_outcome_of_a_finished_effect(state: State) -> None:
    entry = entry_in(state)
    assert verdict(entry) == Replay(entry=entry)


@pytest.mark.parametrize("state", ENDED)
def test_a_finished_effect_is_not_given_to_other_arguments(state: State) -> None:
    entry = entry_in(state, **OTHERS)
    assert verdict(entry) == Reused(entry=entry)


@pytest.mark.parametrize("state", ENDED)
def test_the_same_message_goes_on_from_an_outcome_whose_continuation_may_be_missing(state: State) -> None:
    entry = entry_in(state, continued=False, **OWN)
    assert verdict(entry) == Replay(entry=entry)


@pytest.mark.parametrize("state", ENDED)
def test_the_same_message_touches_nothing_once_it_was_continued(state: State) -> None:
    entry = entry_in(state, continued=True, **OWN)
    assert verdict(entry) == Continued(entry=entry)
    another = entry_in(state, continued=True)
    assert verdict(another) == Replay(entry=another)


def test_the_same_message_is_never_a_reuse() -> None:
    """A deploy may have changed how arguments are digested while the message was under way."""
    assert isinstance(verdict(entry_in(State.COMPLETED, **OWN, **OTHERS)), Replay)
    assert isinstance(verdict(entry_in(State.CLAIMED, **OWN, **OTHERS)), Busy)


def test_a_running_claim_is_busy_for_the_rest_of_its_lease() -> None:
    assert verdict(entry_in(State.CLAIMED, lease_left=7.5)) == Busy(wait=7.5, own=False)
    assert verdict(entry_in(State.CLAIMED, lease_left=7.5, **OWN)) == Busy(wait=7.5, own=True)


def test_a_running_claim_is_not_shared_with_other_arguments() -> None:
    entry = entry_in(State.CLAIMED, **OTHERS)
    assert verdict(entry) == Reused(entry=entry)


def test_a_claim_whose_holders_died_too_often_is_poison() -> None:
    entry = entry_in(State.CLAIMED, lease_left=-1.0, deaths=2)
    assert verdict(entry) == Poison(entry=entry)
    assert verdict(entry_in(State.CLAIMED, lease_left=5.0, deaths=2)) == Busy(wait=5.0, own=False)


def test_a_lease_that_ended_under_the_question_is_busy_for_no_time() -> None:
    """Another claim came first, or the same one will be granted when it is asked again."""
    assert verdict(entry_in(State.CLAIMED, lease_left=-1.0)) == Busy(wait=0.0, own=False)


def test_a_release_under_the_question_is_busy_for_no_time() -> None:
    assert verdict(entry_in(State.RELEASED, deaths=2)) == Busy(wait=0.0, own=False)
    assert verdict(entry_in(State.RELEASED, deaths=2, **OWN)) == Busy(wait=0.0, own=True)


def test_a_released_effect_whose_holders_died_too_often_is_poison() -> None:
    entry = entry_in(State.RELEASED, deaths=3)
    assert verdict(entry) == Poison(entry=entry)


@pytest.mark.parametrize("state", HELD)
def test_what_waits_for_a_person_waits_for_all(state: State) -> None:
    for entry in (entry_in(state), entry_in(state, **OWN), entry_in(state, **OTHERS)):
        assert verdict(entry) == Held(entry=entry)


entries = st.builds(
    entry_in,
    st.sampled_from(State),
    fence=st.integers(1, 2**53 - 2),
    attempt=st.sampled_from([b"first###", b"second##"]),
    identity=st.sampled_from([b"message one#####", b"message two#####"]),
    fingerprint=st.sampled_from([b"seven", b"eight", b""]),
    lease_left=st.sampled_from([-1.0, 0.0, 1.0]),
    deaths=st.integers(0, 4),
    attempts=st.integers(1, 9),
    continued=st.booleans(),
)
claims = st.builds(
    claim_of,
    fingerprint=st.sampled_from([b"seven", b"eight", b""]),
    max_takeovers=st.integers(1, 4),
)


@given(entry=entries, claim=claims, micros=st.integers(0, 2**53 - 2), brings_its_fence=st.booleans())
def test_whatever_stands_a_grant_never_goes_back(
    entry: Entry, claim: Claim, micros: int, *, brings_its_fence: bool
) -> None:
    answer = admit(entry, replace(claim, reenter=entry.fence if brings_its_fence else None), micros)
    if isinstance(answer, Refused):
        assert answer.entry is entry
        return
    assert entry.state in {State.CLAIMED, State.RELEASED}
    assert answer.deaths - entry.deaths == (answer.takeover and answer.fence != entry.fence)
    assert answer.deaths < claim.max_takeovers or not answer.takeover or answer.fence == entry.fence
    asked_again = entry.attempt == claim.attempt and entry.state is State.CLAIMED and entry.lease_left > 0
    assert answer.fence == entry.fence if asked_again else answer.fence > entry.fence
    assert answer.attempts == entry.attempts + (not asked_again)


@given(entry=entries, claim=claims)
def test_a_refusal_always_has_a_verdict_and_unfinished_work_is_never_replayed(entry: Entry, claim: Claim) -> None:
    """Acknowledging a duplicate of unfinished work as done would lose it (rule 4)."""
    refused = admit(entry, claim, NOW)
    if not isinstance(refused, Refused):
        return
    found = judge(refused, claim)
    assert isinstance(found, Replay | Continued) <= (entry.state in ENDED)
    assert isinstance(found, Held) is (entry.state in HELD)
    assert isinstance(found, Poison) <= (entry.deaths + 1 >= claim.max_takeovers)
