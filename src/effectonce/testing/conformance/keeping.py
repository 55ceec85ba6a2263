"""What people do with entries that are held or finished, and what the pruner takes away."""

from dataclasses import replace

import pytest

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.domain.steps import End
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
    timeless,
)

BY = b"a person"
HELD = [State.UNKNOWN, State.POISONED]
FREE = [State.CLAIMED, State.RELEASED]
FINISHED = [State.COMPLETED, State.FAILED]


class Keeping(Suite):
    """Rules about settling, running again, redacting and pruning."""

    @pytest.mark.parametrize("state", HELD)
    @pytest.mark.parametrize(
        "outcome",
        [
            Outcome(state=State.COMPLETED, result=b"paid", keep=HOUR),
            Outcome(state=State.COMPLETED, result=None, keep=None),
            Outcome(state=State.FAILED, result=b"bounced", keep=HOUR),
        ],
        ids=["done", "done, None", "failed"],
    )
    def test_a_person_ends_what_is_held(self, store: LedgerStore, state: State, outcome: Outcome) -> None:
        claim, before = self._in(store, state)
        store.hold(claim.digest, b"message")
        assert store.settle_held(before, outcome, by=BY)
        after = entry_of(store, claim)
        assert (after.state, after.result, after.result_kept) == (outcome.state, outcome.result, True)
        assert (after.attempt, after.continued, after.identity) == (BY, False, before.identity)
        assert after.fence > before.fence
        assert b"message" in store.held(claim.digest)

    @pytest.mark.parametrize("state", [*FREE, *FINISHED])
    def test_what_is_not_held_is_not_ended_by_a_person(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state)
        assert not store.settle_held(before, DONE, by=BY)
        assert timeless(entry_of(store, claim)) == timeless(before)

    @pytest.mark.parametrize("state", [*HELD, *FINISHED])
    def test_a_person_lets_it_run_again(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state)
        assert store.free(before, by=BY, keep=HOUR)
        after = entry_of(store, claim)
        assert (after.state, after.deaths, after.result) == (State.RELEASED, 0, None)
        assert after.fence > before.fence
        again = granted(store, next_attempt(claim))
        assert (again.takeover, again.deaths) == (False, 0)
        assert again.fence > after.fence

    @pytest.mark.parametrize("state", FREE)
    def test_what_goes_on_by_itself_is_not_let_go_by_a_person(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state)
        assert not store.free(before, by=BY, keep=HOUR)
        assert timeless(entry_of(store, claim)) == timeless(before)

    @pytest.mark.parametrize("state", HELD)
    def test_what_ended_of_a_held_effect_stays_ended_when_it_runs_again(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state, with_steps=True)
        assert store.free(before, by=BY, keep=HOUR)
        assert [(step.name, step.result) for step in store.steps(claim.digest)] == [("reserve", b"7")]

    @pytest.mark.parametrize("state", FINISHED)
    def test_a_finished_effect_runs_again_from_its_start(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state, with_steps=True)
        assert store.free(before, by=BY, keep=HOUR)
        assert list(store.steps(claim.digest)) == []

    @pytest.mark.parametrize("word", ["settled", "freed"])
    def test_a_holder_that_wakes_after_a_person_has_spoken_is_fenced(self, store: LedgerStore, word: str) -> None:
        claim = new_claim()
        held = granted(store, claim)
        store.mark_unknown(held.digest, held.attempt)
        seen = entry_of(store, claim)
        assert store.settle_held(seen, DONE, by=BY) if word == "settled" else store.free(seen, by=BY, keep=HOUR)
        assert not store.complete(held, DONE)
        assert not store.release(held, retries=0, reset=True, keep=HOUR)

    @pytest.mark.parametrize("word", ["settle", "free", "redact"])
    def test_a_person_who_looked_before_something_moved_changes_nothing(self, store: LedgerStore, word: str) -> None:
        claim, seen = self._in(store, State.COMPLETED if word == "redact" else State.UNKNOWN)
        assert store.free(seen, by=BY, keep=HOUR)
        now = entry_of(store, claim)
        words = {
            "settle": lambda: store.settle_held(seen, DONE, by=b"somebody"),
            "free": lambda: store.free(seen, by=b"somebody", keep=HOUR),
            "redact": lambda: store.redact(seen),
        }
        assert not words[word]()
        assert timeless(entry_of(store, claim)) == timeless(now)

    @pytest.mark.parametrize("state", FINISHED)
    def test_a_redacted_entry_says_nothing_and_still_stands_in_the_way(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state, with_steps=True)
        assert store.redact(before)
        after = entry_of(store, claim)
        assert (after.key, after.fingerprint, after.result, after.result_kept) == ("", b"", None, False)
        assert (after.state, after.identity, after.fence) == (before.state, before.identity, before.fence)
        assert list(store.steps(claim.digest)) == []
        assert list(store.find(claim.key)) == []
        assert not isinstance(store.claim(next_attempt(claim)), Granted)

    @pytest.mark.parametrize("state", [*HELD, *FREE])
    def test_what_has_not_finished_is_not_redacted(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state)
        assert not store.redact(before)
        assert timeless(entry_of(store, claim)) == timeless(before)

    def test_a_message_that_was_sent_again_is_forgotten_alone(self, store: LedgerStore) -> None:
        claim, _ = self._in(store, State.UNKNOWN)
        for message in (b"first", b"second"):
            store.hold(claim.digest, message)
        store.unhold(claim.digest, b"first")
        store.unhold(claim.digest, b"first")
        assert list(store.held(claim.digest)) == [b"second"]

    @pytest.mark.parametrize("state", [*FINISHED, State.RELEASED])
    def test_what_is_over_goes_with_its_steps(self, store: LedgerStore, state: State) -> None:
        claim, _ = self._in(store, state, keep=MOMENT, with_steps=True)
        self.until(lambda: self._pruned(store, claim))
        assert list(store.steps(claim.digest)) == []

    @pytest.mark.parametrize("state", [State.CLAIMED, *HELD])
    def test_what_is_not_over_stays_however_old(self, store: LedgerStore, state: State) -> None:
        claim, before = self._in(store, state, keep=MOMENT, with_steps=True)
        self.let_pass(store, 2 * MOMENT)
        assert not self._pruned(store, claim)
        assert timeless(entry_of(store, claim)) == timeless(before)
        assert len(store.steps(claim.digest)) == 2

    def test_a_look_removes_nothing(self, store: LedgerStore) -> None:
        claim, _ = self._in(store, State.COMPLETED, keep=HOUR)
        over, _ = self._in(store, State.RELEASED, keep=MOMENT)
        self.until(lambda: store.forgets_by_itself or store.over(limit=1000, after=b"").removed >= 1)
        assert store.over(limit=1000, after=b"").after is None
        assert store.read(claim.digest) is not None
        assert store.forgets_by_itself or store.read(over.digest) is not None

    @pytest.mark.parametrize("keep", [HOUR, None])
    def test_what_has_still_to_live_stays(self, store: LedgerStore, keep: float | None) -> None:
        claim, _ = self._in(store, State.COMPLETED, keep=keep)
        assert not self._pruned(store, claim)

    def test_pruning_goes_on_where_it_stopped_and_comes_to_an_end(self, store: LedgerStore) -> None:
        claims = [self._in(store, State.COMPLETED, keep=HOUR)[0] for _ in range(7)]
        after, batches = b"", 0
        while True:
            pruned = store.prune(limit=2, after=after)
            batches += 1
            if pruned.after is None:
                break
            assert pruned.after > after
            after = pruned.after
        assert store.forgets_by_itself or batches >= 4
        assert all(store.read(claim.digest) for claim in claims)

    def _pruned(self, store: LedgerStore, claim: Claim) -> bool:
        """Prune all, and tell whether this effect is gone."""
        after: bytes | None = b""
        while after is not None:
            after = store.prune(limit=1000, after=after).after
        return store.read(claim.digest) is None

    def _in(
        self, store: LedgerStore, state: State, *, keep: float | None = HOUR, with_steps: bool = False
    ) -> tuple[Claim, Entry]:
        """An effect in *state*, and its entry as it is read; one that goes at once may be gone."""
        claim = new_claim(keep=keep, lease=MOMENT if state is State.POISONED else HOUR)
        held = granted(store, claim)
        if with_steps:
            store.begin_step(held, "reserve", holds=False)
            store.end_step(held, "reserve", End(result=b"7"))
            store.begin_step(held, "pay", holds=True)
        before = entry_of(store, held)
        match state:
            case State.COMPLETED | State.FAILED:
                store.complete(held, replace(DONE, state=state, keep=keep))
            case State.RELEASED:
                store.release(held, retries=0, reset=True, keep=keep)
            case State.UNKNOWN:
                store.mark_unknown(held.digest, held.attempt)
            case State.POISONED:
                self.until_ended(store, held)
                assert store.poison(before, b"its own message")
            case State.CLAIMED:
                pass
        return claim, store.read(held.digest) or before
