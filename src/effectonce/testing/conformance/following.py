"""The one message that goes on after a holder."""

import secrets
from collections.abc import Callable
from dataclasses import replace

import pytest

from effectonce.domain.claims import Granted
from effectonce.domain.following import Following
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.crowds import at_once
from effectonce.testing.conformance.scene import DONE, HOUR, Suite, entry_of, granted, new_claim, next_attempt, timeless

FIRST, SECOND = b"first message###", b"second message##"

Move = Callable[[LedgerStore, Granted], object]

MOVES: dict[str, Move] = {
    "completed": lambda store, held: store.complete(held, DONE),
    "released": lambda store, held: store.release(held, retries=0, reset=True, keep=HOUR),
    "unknown": lambda store, held: store.mark_unknown(held.digest, held.attempt),
    "poisoned": lambda store, held: store.poison(entry_of(store, held), b"message"),
}


class Followers(Suite):
    """Rules about followers."""

    def test_one_message_follows_a_holder(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        entry = entry_of(store, held)
        assert store.follow(entry, FIRST) is Following.NEXT
        assert store.follow(entry, SECOND) is Following.ANOTHER
        assert store.follow(entry, FIRST) is Following.NEXT
        assert timeless(entry_of(store, held)) == timeless(entry)

    def test_a_holder_whose_lease_has_ended_is_followed_too(self, store: LedgerStore) -> None:
        held = self.abandoned(store, new_claim())
        assert store.follow(entry_of(store, held), FIRST) is Following.NEXT

    @pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
    def test_nobody_follows_who_holds_no_more(self, store: LedgerStore, move: Move) -> None:
        held = granted(store, new_claim())
        seen = entry_of(store, held)
        assert store.follow(seen, FIRST) is Following.NEXT
        move(store, held)
        assert [store.follow(seen, each) for each in (FIRST, SECOND)] == [Following.MOVED] * 2

    def test_an_effect_that_nobody_knows_has_no_follower(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        seen = entry_of(store, held)
        unknown = new_claim()
        assert store.follow(replace(seen, digest=unknown.digest), FIRST) is Following.MOVED
        assert store.read(unknown.digest) is None

    @pytest.mark.parametrize("way", ["re-entry", "takeover", "after its end", "recurrence"])
    def test_the_next_grant_has_no_follower(self, store: LedgerStore, way: str) -> None:
        """Or a change would be lost that came after the follower had begun."""
        claim = new_claim()
        held = self.abandoned(store, claim) if way == "takeover" else granted(store, claim)
        seen = entry_of(store, held)
        assert store.follow(seen, FIRST) is Following.NEXT
        if way == "after its end":
            store.release(held, retries=0, reset=True, keep=HOUR)
        if way == "recurrence":
            store.complete(held, DONE)
        fence = held.fence if way == "re-entry" else None
        following = next_attempt(claim, reenter=fence, recurs=True, identity=secrets.token_bytes(16))
        now = entry_of(store, granted(store, following))
        assert store.follow(seen, FIRST) is Following.MOVED
        assert store.follow(now, SECOND) is Following.NEXT

    def test_asking_again_keeps_the_follower(self, store: LedgerStore) -> None:
        claim = new_claim()
        held = granted(store, claim)
        assert store.follow(entry_of(store, held), FIRST) is Following.NEXT
        assert store.claim(claim) == held
        assert store.follow(entry_of(store, held), SECOND) is Following.ANOTHER

    def test_of_many_that_ask_at_once_one_follows(self, store: LedgerStore) -> None:
        held = granted(store, new_claim())
        entry = entry_of(store, held)
        answers = at_once([lambda: store.follow(entry, secrets.token_bytes(16))] * 8)
        assert sorted(answers) == [Following.NEXT] + [Following.ANOTHER] * 7
