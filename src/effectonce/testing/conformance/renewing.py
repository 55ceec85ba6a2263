"""Which leases are renewed."""

from effectonce.domain.claims import Granted, Refused
from effectonce.ports import LedgerStore, Renewal
from effectonce.testing.conformance.scene import (
    DONE,
    HOUR,
    Suite,
    entry_of,
    granted,
    new_claim,
    next_attempt,
    renewal,
    timeless,
)


class Renewing(Suite):
    """Rules about renewals."""

    def test_a_renewal_gives_a_whole_lease_from_now(self, store: LedgerStore) -> None:
        held = granted(store, new_claim(lease=60.0))
        before = entry_of(store, held)
        assert store.renew([renewal(held, lease=HOUR)]) == {held.attempt}
        after = entry_of(store, held)
        assert HOUR - 60 < after.lease_left <= HOUR
        assert timeless(after) == timeless(before)

    def test_a_renewal_may_shorten_a_lease(self, store: LedgerStore) -> None:
        held = granted(store, new_claim(lease=HOUR))
        assert store.renew([renewal(held, lease=60.0)]) == {held.attempt}
        assert entry_of(store, held).lease_left <= 60.0

    def test_a_renewed_claim_is_not_taken_over_when_its_first_lease_would_have_ended(self, store: LedgerStore) -> None:
        """A14: a lock that runs out under a long body."""
        held = self.renewed_after_its_first_lease(store)
        assert isinstance(store.claim(new_claim(digest=held.digest, fingerprint=b"")), Refused)

    def test_a_lease_that_has_ended_is_not_renewed(self, store: LedgerStore) -> None:
        """Its holder has stopped believing in it, so nobody may bring it back (rule 11)."""
        held = self.abandoned(store, new_claim())
        assert store.renew([renewal(held)]) == frozenset()
        assert entry_of(store, held).lease_left < 0

    def test_a_batch_renews_those_that_hold_and_only_those(self, store: LedgerStore) -> None:
        holders = [granted(store, new_claim(lease=60.0)) for _ in range(3)]
        strangers = self._strangers(store)
        mixed = [renewal(held) for held in holders] + strangers
        standing = {stranger.digest: store.read(stranger.digest) for stranger in strangers}
        assert store.renew(mixed[::-1]) == {held.attempt for held in holders}
        assert all(entry_of(store, held).lease_left > 60 for held in holders)
        for digest, before in standing.items():
            assert timeless(store.read(digest)) == timeless(before)

    def test_a_renewal_of_nothing_is_nothing(self, store: LedgerStore) -> None:
        assert store.renew([]) == frozenset()

    def test_hundreds_of_leases_are_renewed_at_once(self, store: LedgerStore) -> None:
        holders = [granted(store, new_claim()) for _ in range(300)]
        assert store.renew([renewal(held) for held in holders]) == {held.attempt for held in holders}

    def _strangers(self, store: LedgerStore) -> list[Renewal]:
        """Renewals by those that hold nothing: gone, finished, fenced, or never there."""
        ended = self.abandoned(store, new_claim())
        done = granted(store, new_claim())
        store.complete(done, DONE)
        released = granted(store, new_claim())
        store.release(released, retries=0, reset=True, keep=HOUR)
        claim = new_claim()
        slept = self.abandoned(store, claim)
        granted(store, next_attempt(claim))
        never = new_claim()
        lost = Granted(digest=never.digest, attempt=never.attempt, fence=1, takeover=False, deaths=0, attempts=1)
        return [renewal(held) for held in (ended, done, released, slept, lost)]
