"""Who may end a claim, and what is then written.

Each of complete, release and renew is on condition of the fence *and* the attempt (rule 1): one who slept through a
takeover is refused by the fence, and one whose fence came back after a restore (hole H8) by the attempt.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from effectonce.domain.claims import Granted, Outcome, State
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
    renewal,
    timeless,
)

OUTCOMES = {
    "None": Outcome(state=State.COMPLETED, keep=HOUR),
    "no bytes": Outcome(state=State.COMPLETED, result=b"", keep=HOUR),
    "bytes": Outcome(state=State.COMPLETED, result=bytes(range(256)), keep=HOUR),
    "a megabyte": Outcome(state=State.COMPLETED, result=b"\xff" * 2**20, keep=HOUR),
    "not kept": Outcome(state=State.COMPLETED, kept=False, keep=HOUR),
    "handed over": Outcome(state=State.COMPLETED, kept=False, handed_over=True, continued=True, keep=HOUR),
    "a failure": Outcome(state=State.FAILED, result=b"ValueError", continued=True, keep=HOUR),
    "for ever": Outcome(state=State.COMPLETED, result=b"1", keep=None),
}

Settle = Callable[[LedgerStore, Granted], bool]

SETTLEMENTS: dict[str, Settle] = {
    "complete": lambda store, held: store.complete(held, DONE),
    "release": lambda store, held: store.release(held, retries=0, reset=True, keep=HOUR),
    "renew": lambda store, held: held.attempt in store.renew([renewal(held)]),
}
settlement = pytest.mark.parametrize("settle", SETTLEMENTS.values(), ids=SETTLEMENTS)


class Settling(Suite):
    """Rules about the end of a claim."""

    @pytest.mark.parametrize("outcome", OUTCOMES.values(), ids=OUTCOMES)
    def test_an_outcome_is_read_as_it_was_written(self, store: LedgerStore, outcome: Outcome) -> None:
        claim = new_claim(retries=1)
        held = granted(store, claim)
        before = entry_of(store, claim)
        assert store.complete(held, outcome)
        after = entry_of(store, claim)
        assert (after.state, after.result, after.result_kept) == (outcome.state, outcome.result, outcome.kept)
        assert (after.handed_over, after.continued) == (outcome.handed_over, outcome.continued)
        assert after.since >= before.since
        assert (after.fence, after.attempt, after.attempts) == (held.fence, held.attempt, 1)
        assert (after.key, after.task_id, after.identity) == (claim.key, claim.task_id, claim.identity)
        assert (after.fingerprint, after.retries, after.deaths) == (claim.fingerprint, 1, 0)

    @settlement
    def test_a_stale_holder_is_refused(self, store: LedgerStore, settle: Settle) -> None:
        """A55: a late holder does not free the lock of its successor."""
        claim = new_claim()
        slept = self.abandoned(store, claim)
        holder = granted(store, next_attempt(claim))
        before = entry_of(store, claim)
        assert not settle(store, slept)
        assert timeless(entry_of(store, claim)) == timeless(before)
        assert settle(store, holder)

    @settlement
    def test_an_older_fence_is_refused_also_to_the_same_attempt(self, store: LedgerStore, settle: Settle) -> None:
        held = granted(store, new_claim())
        assert not settle(store, replace(held, fence=held.fence - 1))
        assert not settle(store, replace(held, fence=held.fence + 1))
        assert settle(store, held)

    @settlement
    def test_an_equal_fence_of_another_attempt_is_refused(self, store: LedgerStore, settle: Settle) -> None:
        """Hole H8: after a restore, another attempt may hold the same fence."""
        held = granted(store, new_claim())
        before = entry_of(store, held)
        assert not settle(store, replace(held, attempt=b"somebody"))
        assert timeless(entry_of(store, held)) == timeless(before)

    @settlement
    def test_an_entry_that_is_not_there_is_refused_and_not_made(self, store: LedgerStore, settle: Settle) -> None:
        claim = new_claim()
        lost = Granted(digest=claim.digest, attempt=claim.attempt, fence=1, takeover=False, deaths=0, attempts=1)
        assert not settle(store, lost)
        assert store.read(claim.digest) is None

    @settlement
    def test_a_held_entry_is_refused(self, store: LedgerStore, settle: Settle) -> None:
        held = granted(store, new_claim())
        store.mark_unknown(held.digest, held.attempt)
        assert not settle(store, held)
        assert entry_of(store, held).state is State.UNKNOWN

    @pytest.mark.parametrize("end", ["complete", "release"])
    def test_a_late_holder_may_end_a_claim_that_nobody_took_over(self, store: LedgerStore, end: str) -> None:
        held = self.abandoned(store, new_claim())
        assert SETTLEMENTS[end](store, held)

    def test_completing_again_is_answered_as_the_first_time(self, store: LedgerStore) -> None:
        """The first answer may be lost on the way; a holder must not find itself fenced by itself."""
        held = granted(store, new_claim())
        assert store.complete(held, DONE)
        assert store.complete(held, replace(DONE, state=State.FAILED, result=b"something else"))
        entry = entry_of(store, held)
        assert (entry.state, entry.result) == (State.COMPLETED, b"done")

    def test_an_attempt_that_was_granted_twice_ends_nothing_by_its_first_fence(self, store: LedgerStore) -> None:
        claim = new_claim()
        first = granted(store, claim)
        assert store.release(first, retries=0, reset=False, keep=HOUR)
        second = granted(store, claim)
        assert store.complete(second, DONE)
        assert not store.complete(first, DONE)

    def test_what_is_completed_is_not_released_or_renewed(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        assert store.complete(held, DONE)
        assert not SETTLEMENTS["release"](store, held)
        assert not SETTLEMENTS["renew"](store, held)
        assert entry_of(store, held).state is State.COMPLETED

    def test_what_is_released_is_not_completed_or_renewed(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        assert SETTLEMENTS["release"](store, held)
        assert not SETTLEMENTS["complete"](store, held)
        assert not SETTLEMENTS["renew"](store, held)
        assert entry_of(store, held).state is State.RELEASED

    @pytest.mark.parametrize("reset", [True, False], ids=["reset", "kept"])
    def test_a_release_keeps_all_but_the_hold(self, store: LedgerStore, *, reset: bool) -> None:
        """A failure resets the deaths, a retry does not (rule 3); fences go on from the tombstone (rule 1)."""
        claim = new_claim()
        held = self.with_deaths(store, claim, 1)
        before = entry_of(store, claim)
        assert store.release(held, retries=2, reset=reset, keep=HOUR)
        after = entry_of(store, claim)
        assert after.state is State.RELEASED
        assert (after.fence, after.attempt, after.attempts) == (before.fence, before.attempt, 2)
        assert (after.deaths, after.retries) == (0 if reset else 1, 2)
        assert (after.key, after.fingerprint, after.identity) == (before.key, before.fingerprint, before.identity)

    def test_releasing_again_is_answered_as_the_first_time(self, store: LedgerStore) -> None:
        claim = new_claim()
        held = granted(store, claim)
        assert store.release(held, retries=1, reset=False, keep=HOUR)
        assert store.release(held, retries=1, reset=False, keep=HOUR)
        granted(store, next_attempt(claim))
        assert not store.release(held, retries=1, reset=False, keep=HOUR)

    @pytest.mark.parametrize("keep", [HOUR, None], ids=["an hour", "for ever"])
    @pytest.mark.parametrize("end", ["complete", "release"])
    def test_an_entry_is_there_as_long_as_it_is_to_be_kept(
        self, store: LedgerStore, end: str, keep: float | None
    ) -> None:
        held = granted(store, new_claim(lease=MOMENT, keep=MOMENT))
        if end == "complete":
            store.complete(held, replace(DONE, keep=keep))
        else:
            store.release(held, retries=0, reset=True, keep=keep)
        self.let_pass(store, 0.02)
        assert entry_of(store, held).fence == held.fence
