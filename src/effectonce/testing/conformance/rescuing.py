"""Which claims the rescuer frees (rule 17)."""

from collections.abc import Iterable
from dataclasses import replace

from effectonce.domain.claims import Claim, Entry, Granted, Poison, Refused, State, judge
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

ALL = 10_000


class Rescuing(Suite):
    """Rules about claims whose holder is gone for good."""

    def test_a_claim_that_ended_more_than_a_lease_ago_is_released_and_a_death_is_counted(
        self, store: LedgerStore
    ) -> None:
        """A56: a lock must not outlive its holder for long."""
        held = self._long_gone(store)
        before = entry_of(store, held)
        rescued = _of(held, store.rescue(ALL))
        assert [timeless(entry) for entry in rescued] == [timeless(before)]
        after = entry_of(store, held)
        assert (after.state, after.deaths) == (State.RELEASED, 1)
        assert (after.fence, after.attempt, after.attempts) == (before.fence, before.attempt, before.attempts)

    def test_a_claim_is_left_alone_for_one_lease_after_its_end(self, store: LedgerStore) -> None:
        def rescued_too_early(lease: float) -> list[Entry] | None:
            held = granted(store, new_claim(lease=lease))
            self.until_ended(store, held)
            rescued = _of(held, store.rescue(ALL))
            return rescued if entry_of(store, held).lease_left > -lease else None

        assert self.in_time(rescued_too_early) == []

    def test_a_running_claim_is_left_alone(self, store: LedgerStore) -> None:
        """A28: a slow run is no dead one."""
        held = granted(store, new_claim())
        assert _of(held, store.rescue(ALL)) == []
        assert entry_of(store, held).state is State.CLAIMED

    def test_a_renewal_puts_the_rescue_off(self, store: LedgerStore) -> None:
        held = self.renewed_after_its_first_lease(store)
        assert _of(held, store.rescue(ALL)) == []

    def test_what_has_ended_is_left_alone(self, store: LedgerStore) -> None:
        done, released, unknown = (self._long_gone(store) for _ in range(3))
        store.complete(done, DONE)
        store.release(released, retries=0, reset=True, keep=HOUR)
        store.mark_unknown(unknown.digest, unknown.attempt)
        standing = [entry_of(store, held) for held in (done, released, unknown)]
        store.rescue(ALL)
        for entry in standing:
            assert timeless(store.read(entry.digest)) == timeless(entry)

    def test_it_frees_no_more_than_it_is_asked_to(self, store: LedgerStore) -> None:
        gone = {self._long_gone(store).digest for _ in range(5)}
        freed: set[bytes] = set()
        assert list(store.rescue(0)) == []
        while not gone <= freed:
            batch = store.rescue(2)
            assert 0 < len(batch) <= 2
            assert not freed & {entry.digest for entry in batch}
            freed |= {entry.digest for entry in batch}

    def test_a_holder_that_wakes_after_a_rescue_is_fenced(self, store: LedgerStore) -> None:
        held = self._long_gone(store)
        store.rescue(ALL)
        assert not store.complete(held, DONE)
        assert store.renew([renewal(held)]) == frozenset()
        assert entry_of(store, held).state is State.RELEASED

    def test_a_rescued_effect_is_claimed_again_with_its_deaths(self, store: LedgerStore) -> None:
        claim = new_claim(lease=MOMENT)
        held = self._long_gone(store, claim)
        store.rescue(ALL)
        following = granted(store, next_attempt(claim, lease=HOUR))
        assert (following.takeover, following.deaths, following.attempts) == (False, 1, 2)
        assert following.fence > held.fence

    def test_an_effect_whose_holders_die_too_often_is_not_granted_after_a_rescue(self, store: LedgerStore) -> None:
        claim = new_claim(lease=MOMENT, max_takeovers=2)
        self._long_gone(store, claim)
        store.rescue(ALL)
        claim = next_attempt(claim)
        self._long_gone(store, claim)
        store.rescue(ALL)
        claim = next_attempt(claim)
        answer = store.claim(claim)
        assert isinstance(answer, Refused)
        assert isinstance(judge(answer, claim), Poison)

    def test_a_tombstone_of_the_rescuer_is_kept_as_the_claim_asked(self, store: LedgerStore) -> None:
        held = self._long_gone(store, new_claim(lease=MOMENT, keep=HOUR))
        store.rescue(ALL)
        self.let_pass(store, 0.02)
        assert entry_of(store, held).fence == held.fence

    def _long_gone(self, store: LedgerStore, claim: Claim | None = None) -> Granted:
        """A claim that the rescuer may free."""
        held = granted(store, replace(claim or new_claim(), lease=MOMENT))
        self.until_ended(store, held, ago=2 * MOMENT)
        return held


def _of(held: Granted, rescued: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in rescued if entry.digest == held.digest]
