"""Entries that are set aside, their messages, and the marks of an attempt."""

from dataclasses import replace

import pytest

from effectonce.domain.claims import Granted, Refused, State
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.scene import (
    DONE,
    HOUR,
    Suite,
    entry_of,
    granted,
    new_claim,
    next_attempt,
    timeless,
)

MESSAGES = [b"first", b"\0\xff\r\n", b"", "grüße".encode(), b"x" * 100_000]


class Holding(Suite):
    """Rules about what waits for a person, and about marks."""

    def test_poison_sets_an_entry_aside_with_its_message(self, store: LedgerStore) -> None:
        claim = new_claim()
        held = self.abandoned(store, claim)
        before = entry_of(store, claim)
        assert store.poison(before, b"message")
        after = entry_of(store, claim)
        assert after.state is State.POISONED
        assert (after.fence, after.attempt, after.deaths) == (held.fence, held.attempt, before.deaths)
        assert list(store.held(claim.digest)) == [b"message"]
        assert isinstance(store.claim(next_attempt(claim)), Refused)

    def test_poison_leaves_an_entry_alone_that_has_another_holder(self, store: LedgerStore) -> None:
        claim = new_claim()
        self.abandoned(store, claim)
        seen = entry_of(store, claim)
        granted(store, next_attempt(claim))
        now = entry_of(store, claim)
        assert not store.poison(seen, b"message")
        assert timeless(entry_of(store, claim)) == timeless(now)
        assert list(store.held(claim.digest)) == []

    @pytest.mark.parametrize("end", ["completed", "released"])
    def test_poison_does_not_bury_a_holder_that_ended_late(self, store: LedgerStore, end: str) -> None:
        """Its fence and attempt are still there, and its work is done or its failure known."""
        held = self.abandoned(store, new_claim())
        seen = entry_of(store, held)
        if end == "completed":
            assert store.complete(held, DONE)
        else:
            assert store.release(held, retries=0, reset=True, keep=HOUR)
        assert not store.poison(seen, b"message")
        assert entry_of(store, held).state is (State.COMPLETED if end == "completed" else State.RELEASED)

    def test_poison_sets_a_released_entry_aside_too(self, store: LedgerStore) -> None:
        def poisoned(keep: float) -> Granted | None:
            held = self.abandoned(store, new_claim())
            store.release(held, retries=0, reset=False, keep=keep)
            seen = store.read(held.digest)
            done = seen is not None and store.poison(seen, b"message")
            self.let_pass(store, 2 * keep)
            return held if done else None

        held = self.in_time(poisoned)
        assert entry_of(store, held).state is State.POISONED
        assert list(store.held(held.digest)) == [b"message"]

    def test_poisoning_again_is_answered_as_the_first_time(self, store: LedgerStore) -> None:
        held = self.abandoned(store, new_claim())
        seen = entry_of(store, held)
        assert store.poison(seen, b"message")
        assert store.poison(seen, b"message")
        assert store.poison(seen, b"another")
        assert list(store.held(held.digest)) == [b"message", b"another"]

    def test_poison_does_not_bury_an_outcome(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.complete(held, DONE)
        assert not store.poison(entry_of(store, held), b"message")
        assert entry_of(store, held).result == b"done"

    def test_poison_makes_no_entry(self, store: LedgerStore) -> None:
        seen = entry_of(store, granted(store, new_claim()))
        gone = replace(seen, digest=new_claim().digest)
        assert not store.poison(gone, b"message")
        assert store.read(gone.digest) is None

    def test_messages_are_kept_once_and_in_the_order_they_came(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.mark_unknown(held.digest, held.attempt)
        for message in [*MESSAGES, *MESSAGES[::-1]]:
            store.hold(held.digest, message)
        assert list(store.held(held.digest)) == MESSAGES

    def test_each_entry_has_messages_of_its_own(self, store: LedgerStore) -> None:
        first, second = granted(store, new_claim()), granted(store, new_claim())
        for held in (first, second):
            store.mark_unknown(held.digest, held.attempt)
        store.hold(first.digest, b"message")
        assert list(store.held(second.digest)) == []

    def test_an_entry_without_messages_has_none(self, store: LedgerStore) -> None:
        assert list(store.held(new_claim().digest)) == []

    def test_a_continuation_is_noted_by_its_own_attempt_only(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.complete(held, DONE)
        store.mark_continued(held.digest, b"somebody")
        assert not entry_of(store, held).continued
        before = entry_of(store, held)
        store.mark_continued(held.digest, held.attempt)
        store.mark_continued(held.digest, held.attempt)
        assert timeless(entry_of(store, held)) == timeless(replace(before, continued=True))

    def test_what_has_no_outcome_has_no_continuation(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.mark_continued(held.digest, held.attempt)
        assert not entry_of(store, held).continued

    @pytest.mark.parametrize("state", [State.CLAIMED, State.COMPLETED, State.RELEASED])
    def test_an_attempt_can_say_that_nobody_knows_how_it_ended(self, store: LedgerStore, state: State) -> None:
        def marked(keep: float) -> Granted | None:
            held = granted(store, new_claim())
            if state is State.COMPLETED:
                store.complete(held, replace(DONE, keep=keep))
            elif state is State.RELEASED:
                store.release(held, retries=0, reset=False, keep=keep)
            store.mark_unknown(held.digest, held.attempt)
            done = store.read(held.digest) is not None
            self.let_pass(store, 2 * keep)
            return held if done else None

        assert entry_of(store, self.in_time(marked)).state is State.UNKNOWN

    def test_an_attempt_says_nothing_about_the_entry_of_another(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.mark_unknown(held.digest, b"somebody")
        assert entry_of(store, held).state is State.CLAIMED

    def test_a_mark_makes_no_entry(self, store: LedgerStore) -> None:
        claim = new_claim()
        store.mark_continued(claim.digest, claim.attempt)
        store.mark_unknown(claim.digest, claim.attempt)
        assert store.read(claim.digest) is None
