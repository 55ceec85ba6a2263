"""What is written down of calls that were only observed."""

import secrets
from dataclasses import replace
from typing import Any

from effectonce.domain.sightings import Sighting, Would
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.crowds import at_once
from effectonce.testing.conformance.scene import Suite


def new_sighting(**changes: Any) -> Sighting:
    """A call that would have been replayed, of an effect that nobody has heard of."""
    seen = Sighting(
        digest=secrets.token_bytes(16),
        key=f"charge:{secrets.token_hex(6)}",
        task="shop.charge",
        task_id=secrets.token_hex(16),
        would=Would.REPLAY,
        again=False,
    )
    return replace(seen, **changes)


def _found(store: LedgerStore, digest: bytes) -> list[Sighting]:
    return [seen for seen in store.sightings(limit=10_000) if seen.digest == digest]


class Observing(Suite):
    """Rules about sightings."""

    def test_a_sighting_is_told_as_it_was_seen(self, store: LedgerStore) -> None:
        seen = new_sighting(would=Would.HOLD, again=True)
        store.see(seen)
        (found,) = _found(store, seen.digest)
        assert replace(found, first=0.0, last=0.0) == seen
        assert found.first == found.last > 0

    def test_the_same_again_is_counted_and_the_last_one_named(self, store: LedgerStore) -> None:
        seen = new_sighting()
        store.see(seen)
        store.see(replace(seen, task_id="the last"))
        (found,) = _found(store, seen.digest)
        assert (found.times, found.task_id) == (2, "the last")
        assert found.first <= found.last

    def test_what_would_have_happened_and_why_it_came_are_kept_apart(self, store: LedgerStore) -> None:
        seen = new_sighting()
        others = [seen, replace(seen, again=True), replace(seen, would=Would.REUSE)]
        for each in others:
            store.see(each)
        told = {(found.would, found.again, found.times) for found in _found(store, seen.digest)}
        assert told == {(each.would, each.again, 1) for each in others}

    def test_of_many_at_once_each_is_counted(self, store: LedgerStore) -> None:
        seen = new_sighting()
        at_once([lambda: store.see(seen)] * 8)
        assert [found.times for found in _found(store, seen.digest)] == [8]

    def test_the_latest_come_first_and_no_more_than_asked_for(self, store: LedgerStore) -> None:
        marks = []
        for _ in range(3):
            seen = new_sighting()
            store.see(seen)
            marks.append(seen.mark)
            self.let_pass(store, 0.002)
        assert [found.mark for found in store.sightings(limit=2)] == marks[:0:-1]

    def test_an_entry_is_not_a_sighting_and_a_fresh_sighting_is_not_swept_away(self, store: LedgerStore) -> None:
        seen = new_sighting()
        store.see(seen)
        store.forget_sightings()
        assert _found(store, seen.digest)
        assert store.read(seen.digest) is None
        assert store.find(seen.key) == []
