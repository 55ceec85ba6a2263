"""What the keeper believes after a renewal; the clock stands still but for the store's own slowness."""

from collections.abc import Iterable
from typing import Any, cast

from effectonce.domain.claims import Granted
from effectonce.domain.leases import Lease
from effectonce.events import Event, Name
from effectonce.ports import LedgerStore, Renewal
from effectonce.runtime.keeper import Keeper

LENGTH = 900.0
DUE = 300.0
SLOW = 200.0


class SlowStore:
    """Renews *attempts* alone, and takes *SLOW* seconds for it."""

    name = "slow"

    def __init__(self, attempts: Iterable[bytes]) -> None:
        self.now = 0.0
        self._attempts = set(attempts)

    def renew(self, renewals: Iterable[Renewal]) -> set[bytes]:
        self.now += SLOW
        return {each.attempt for each in renewals} & self._attempts


GRANTED = Granted(digest=b"d" * 16, attempt=b"attempt.", fence=7, takeover=False, deaths=0, attempts=1)


def test_belief_counts_from_the_asking_and_a_slow_answer_buys_no_time() -> None:
    store = SlowStore([GRANTED.attempt])
    keeper = Keeper(lambda: cast("LedgerStore", store), emit=lambda _event: None, clock=lambda: store.now)
    with keeper.holding(GRANTED, lease=Lease.asked(0.0, length=LENGTH), key="k") as held:
        store.now = DUE
        keeper.renew()
        assert (held.lost, held.lease.trusted_until) == (False, DUE + LENGTH)


def test_a_lease_that_the_store_refuses_is_lost_and_never_asked_for_again() -> None:
    said: list[Any] = []
    store = SlowStore([])
    keeper = Keeper(lambda: cast("LedgerStore", store), emit=said.append, clock=lambda: store.now)
    with keeper.holding(GRANTED, lease=Lease.asked(0.0, length=LENGTH), key="k") as held:
        store.now = DUE
        keeper.renew()
        assert held.lost
        assert not held.is_trusted(store.now)
        asked = store.now
        keeper.renew()
        assert store.now == asked
    assert [(event.name, event.key) for event in said if isinstance(event, Event)] == [(Name.LEASE_LOST, "k")]
