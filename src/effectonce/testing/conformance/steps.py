"""Steps: their starts and ends, and what they say of an effect whose holder died (rules 17 and 18)."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from effectonce.domain.claims import Claim, Granted, State
from effectonce.domain.steps import End, Step
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.scene import (
    DONE,
    HOUR,
    MOMENT,
    Suite,
    entry_of,
    granted,
    new_claim,
    next_attempt,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ALL = 10_000
RESULTS = [None, b"", b"paid", b"\0\xff\r\n", b"x" * 100_000]
NAMES = ["pay", "pay 2", "naïve\n", "step:pay", "a" * 200]


def begin(store: LedgerStore, held: Granted, name: str = "pay", *, holds: bool = False) -> None:
    """Begin a step, and insist that it is not refused."""
    assert store.begin_step(held, name, holds=holds)


def only(store: LedgerStore, held: Granted) -> Step:
    """The one step of an effect."""
    (step,) = store.steps(held.digest)
    return step


class Steps(Suite):
    """Rules about steps."""

    def test_a_step_that_was_begun_is_seen_without_an_end(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        begin(store, held, holds=True)
        step = only(store, held)
        assert (step.name, step.attempt, step.fence) == ("pay", held.attempt, held.fence)
        assert (step.ended, step.holds, step.skipped) == (None, True, False)
        assert step.began >= entry_of(store, held).since

    @pytest.mark.parametrize("result", RESULTS, ids=["None", "empty", "short", "odd", "long"])
    def test_a_step_that_ended_has_its_result(self, store: LedgerStore, result: bytes | None) -> None:
        held = granted(store, new_claim())
        begin(store, held)
        assert store.end_step(held, "pay", End(result=result))
        step = only(store, held)
        assert (step.result, step.kept, step.skipped) == (result, True, False)
        assert step.ended is not None
        assert step.ended >= step.began

    def test_an_end_says_whether_the_result_was_kept_and_the_step_skipped(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        begin(store, held, holds=True)
        assert store.end_step(held, "pay", End(kept=False, skipped=True))
        assert (only(store, held).kept, only(store, held).skipped, only(store, held).holds) == (False, True, True)

    def test_steps_are_told_in_the_order_in_which_they_began(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        for name in NAMES:
            begin(store, held, name)
        assert [step.name for step in store.steps(held.digest)] == NAMES

    def test_each_effect_has_steps_of_its_own(self, store: LedgerStore) -> None:
        held, other = granted(store, new_claim()), granted(store, new_claim())
        begin(store, held)
        assert list(store.steps(other.digest)) == []
        assert list(store.steps(new_claim().digest)) == []

    def test_a_start_or_an_end_that_is_written_again_is_answered_as_the_first_time(self, store: LedgerStore) -> None:
        """The answer may have been lost on the way."""
        held = granted(store, new_claim())
        begin(store, held)
        before = only(store, held)
        begin(store, held)
        assert only(store, held) == before
        assert store.end_step(held, "pay", End(result=b"paid"))
        ended = only(store, held)
        assert store.end_step(held, "pay", End(result=b"other"))
        begin(store, held)
        assert only(store, held) == ended

    def test_a_step_goes_over_to_the_attempt_that_begins_it_again(self, store: LedgerStore) -> None:
        claim = new_claim()
        first = self.abandoned(store, claim)
        begin(store, first, holds=True)
        second = granted(store, next_attempt(claim))
        begin(store, second)
        step = only(store, second)
        assert (step.attempt, step.fence, step.ended, step.holds) == (second.attempt, second.fence, None, False)

    def test_a_takeover_finds_the_steps_of_the_attempt_before(self, store: LedgerStore) -> None:
        claim = new_claim()
        first = self.abandoned(store, claim)
        begin(store, first, "reserve")
        store.end_step(first, "reserve", End(result=b"7"))
        begin(store, first, "pay")
        second = granted(store, next_attempt(claim))
        reserve, pay = store.steps(claim.digest)
        assert (reserve.result, reserve.attempt, pay.ended) == (b"7", first.attempt, None)
        assert second.takeover

    @pytest.mark.parametrize("lost", ["taken over", "completed", "released", "unknown"])
    def test_whoever_lost_the_claim_writes_no_step(self, store: LedgerStore, lost: str) -> None:
        claim = new_claim()
        held = self.abandoned(store, claim)
        begin(store, held)
        before = only(store, held)
        losing: dict[str, Callable[[], object]] = {
            "taken over": lambda: granted(store, next_attempt(claim)),
            "completed": lambda: store.complete(held, DONE),
            "released": lambda: store.release(held, retries=0, reset=True, keep=HOUR),
            "unknown": lambda: store.mark_unknown(held.digest, held.attempt),
        }
        losing[lost]()
        assert not store.begin_step(held, "mail", holds=False)
        assert not store.begin_step(held, "pay", holds=False)
        assert not store.end_step(held, "pay", End(result=b"paid"))
        assert not store.cancel_step(held, "pay")
        assert only(store, held) == before

    def test_a_step_makes_no_entry(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        nobody = replace(held, digest=new_claim().digest)
        assert not store.begin_step(nobody, "pay", holds=False)
        assert store.read(nobody.digest) is None

    def test_a_start_that_is_taken_back_was_never_there(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        begin(store, held)
        assert store.cancel_step(held, "pay")
        assert list(store.steps(held.digest)) == []

    def test_steps_survive_release_and_retry(self, store: LedgerStore) -> None:
        claim = new_claim()
        held = granted(store, claim)
        begin(store, held)
        store.end_step(held, "pay", End(result=b"paid"))
        store.release(held, retries=1, reset=False, keep=HOUR)
        granted(store, next_attempt(claim))
        assert only(store, held).result == b"paid"

    def test_an_entry_with_steps_is_claimed_afresh(self, store: LedgerStore) -> None:
        """What the attempt before wrote of its outcome is gone, the steps stay."""
        claim = new_claim(keep=HOUR)
        held = granted(store, claim)
        begin(store, held)
        store.release(held, retries=3, reset=False, keep=HOUR)
        again = granted(store, next_attempt(claim))
        entry = entry_of(store, again)
        assert (entry.state, entry.retries, entry.result, entry.continued) == (State.CLAIMED, 0, None, False)

    @pytest.mark.parametrize(
        ("holds", "begun", "ended", "left"),
        [
            (True, None, False, State.UNKNOWN),
            (False, None, False, State.RELEASED),
            (True, True, False, State.UNKNOWN),
            (False, True, False, State.UNKNOWN),
            (True, True, True, State.RELEASED),
            (True, False, False, State.RELEASED),
        ],
        ids=[
            "the task holds, and no step tells what was done",
            "nothing holds",
            "a step that holds was begun",
            "a step that holds was begun in a task that does not",
            "every step has ended",
            "the step that was begun does not hold",
        ],
    )
    def test_the_rescuer_leaves_to_a_person_what_nobody_knows(
        self, store: LedgerStore, *, holds: bool, begun: bool | None, ended: bool, left: State
    ) -> None:
        held = self._gone(store, new_claim(lease=MOMENT, holds=holds), begun=begun, ended=ended)
        rescued = [entry for entry in store.rescue(ALL) if entry.digest == held.digest]
        assert [entry.state for entry in rescued] == [State.CLAIMED]
        assert (entry_of(store, held).state, entry_of(store, held).deaths) == (left, 1)

    def test_what_waits_for_a_person_is_not_forgotten(self, store: LedgerStore) -> None:
        held = self._gone(store, new_claim(lease=MOMENT, keep=MOMENT, holds=True), begun=None, ended=False)
        store.rescue(ALL)
        self.let_pass(store, 0.01)
        assert entry_of(store, held).state is State.UNKNOWN

    def _gone(self, store: LedgerStore, claim: Claim, *, begun: bool | None, ended: bool) -> Granted:
        held = granted(store, claim)
        if begun is not None:
            begin(store, held, holds=begun)
        if ended:
            assert store.end_step(held, "pay", End())
        self.until_ended(store, held, ago=2 * MOMENT)
        return held
