"""What people ask a store."""

import secrets
from collections.abc import Iterator
from itertools import islice

from effectonce.domain.claims import Entry, State
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.scene import DONE, Suite, entry_of, granted, new_claim, timeless


class Looking(Suite):
    """Rules about finding, listing and counting."""

    def test_an_entry_is_found_by_its_key_and_by_its_digest(self, store: LedgerStore) -> None:
        held = granted(store, new_claim(key="invoice:é:[7]*"))
        entry = entry_of(store, held)
        for words in (entry.key, entry.digest.hex()):
            assert timeless(entry) in [timeless(found) for found in store.find(words)]

    def test_two_effects_with_one_readable_key_are_both_found(self, store: LedgerStore) -> None:
        first = granted(store, new_claim())
        second = granted(store, new_claim(key=entry_of(store, first).key))
        assert {entry.digest for entry in store.find(entry_of(store, first).key)} == {first.digest, second.digest}

    def test_what_is_not_there_is_not_found(self, store: LedgerStore) -> None:
        claim = new_claim()
        assert list(store.find(claim.key)) == []
        assert list(store.find(claim.digest.hex())) == []
        assert list(store.find("*")) == []

    def test_entries_come_in_the_order_of_their_digests_a_page_at_a_time(self, store: LedgerStore) -> None:
        near = secrets.token_bytes(12)
        digests = [near + secrets.token_bytes(4) for _ in range(7)]
        for digest in digests:
            granted(store, new_claim(digest=digest))
        first, second, third = sorted(digests)[:3]
        assert [entry.digest for entry in store.entries(state=None, limit=2, after=first)] == [second, third]
        listed = list(islice(_all(store, None, page=3, after=near), len(digests)))
        assert [entry.digest for entry in listed] == sorted(digests)
        assert timeless(listed[0]) == timeless(store.read(first))

    def test_a_page_holds_no_more_than_it_may(self, store: LedgerStore) -> None:
        for _ in range(3):
            granted(store, new_claim())
        assert list(store.entries(state=None, limit=0)) == []
        assert len(store.entries(state=None, limit=2)) == 2

    def test_entries_of_one_state_are_told_from_the_others(self, store: LedgerStore) -> None:
        claimed, done = granted(store, new_claim()), granted(store, new_claim())
        store.complete(done, DONE)
        listed = {state: list(_all(store, state, page=100)) for state in State}
        assert all(entry.state is state for state, entries in listed.items() for entry in entries)
        assert claimed.digest in {entry.digest for entry in listed[State.CLAIMED]}
        assert done.digest in {entry.digest for entry in listed[State.COMPLETED]}

    def test_entries_are_counted_by_state(self, store: LedgerStore) -> None:
        before = dict(store.counts())
        granted(store, new_claim())
        for _ in range(2):
            store.complete(granted(store, new_claim()), DONE)
        after = store.counts()
        grown = {state: after.get(state, 0) - before.get(state, 0) for state in State}
        assert grown == dict.fromkeys(State, 0) | {State.CLAIMED: 1, State.COMPLETED: 2}

    def test_a_store_that_answers_says_so(self, store: LedgerStore) -> None:
        store.ping()

    def test_a_store_has_a_name(self, store: LedgerStore) -> None:
        assert store.name

    def test_a_schema_that_is_there_stays(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.create_schema()
        assert entry_of(store, held).fence == held.fence

    def test_a_closed_store_opens_again_by_itself(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        store.close()
        assert entry_of(store, held).fence == held.fence


def _all(store: LedgerStore, state: State | None, *, page: int, after: bytes | None = None) -> Iterator[Entry]:
    while batch := store.entries(state=state, limit=page, after=after):
        assert len(batch) <= page
        yield from batch
        after = batch[-1].digest
