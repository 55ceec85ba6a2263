"""The answers to renewals are lost or late: the holder asks again in time, or stops believing in time."""

import queue
import time
from collections.abc import Callable

import pytest

from effectonce.app.ledgers import open_ledger
from effectonce.domain.claims import State
from effectonce.domain.leases import Lease
from effectonce.events import Event, Name
from effectonce.lab.process_tree import wait_until
from effectonce.lab.proxy import Fault, Proxy
from effectonce.runtime.keeper import Keeper
from effectonce.testing.conformance.scene import granted, new_claim
from tests.networks.claims import LEDGERS, strike
from tests.networks.conftest import Market

LEASE = 2.0


@pytest.mark.parametrize("pair", LEDGERS)
@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST])
def test_a_renewal_that_was_lost_is_asked_for_again_in_time(market: Market, order: int, fault: Fault) -> None:
    market.shut(f"mail-{order}")
    lost = strike(market, "renew", fault, times=3)
    result = market.send("mail", order)
    lost.wait(3)
    strike(market, "renew", Fault.NOTHING, times=5).wait(4)  # more than a lease
    market.open(f"mail-{order}")
    assert result.get(timeout=20) == f"mailed {order}"
    assert market.bodies(f"mail:{order}") == 1
    assert "lease.lost" not in market.logs()


@pytest.mark.parametrize("pair", LEDGERS)
def test_a_holder_whose_renewal_is_answered_too_late_is_fenced(market: Market, order: int) -> None:
    """A55: another worker takes over meanwhile; the outside sees one idempotency key, and both messages end well."""
    market.shut(f"mail-{order}")
    late = strike(market, "renew", Fault.LATE_REPLY)
    results = [market.send("mail", order)]
    late.wait()
    other = market.add(env={name: market.env[name] for name in ("SHOP_BROKER", "SHOP_LEDGER")})
    try:
        results.append(market.send("mail", order))
        market.wait_bodies(f"mail:{order}", 2)
        late.let_go()
        market.open(f"mail-{order}")
        assert {result.get(timeout=30) for result in results} == {f"mailed {order}"}
        market.wait_log("fence.refused")
        assert len(market.outside(f"mail:{order}")) == 2
        assert len(set(market.outside(f"mail:{order}"))) == 1
        assert {entry.state for entry in market.once.ledger.entries(state=None, limit=9)} == {State.COMPLETED}
    finally:
        other.stop()


@pytest.mark.parametrize("place", ["postgresql_url", "redis_url"])
def test_a_late_answer_to_a_renewal_buys_no_time(
    place: str, request: pytest.FixtureRequest, proxied: Callable[[str], Proxy]
) -> None:
    proxy = proxied(request.getfixturevalue(place))
    ledger = open_ledger(proxy.url, schema=None, create_schema=None)
    ledger.create_schema()
    events: queue.Queue[Event] = queue.Queue()
    keeper = Keeper(lambda: ledger, emit=events.put)
    renewal = rb"set lease_until" if "sql" in place else rb"EVALSHA"
    asked = time.monotonic()
    claim = granted(ledger, new_claim(lease=LEASE))
    late = proxy.when(renewal, Fault.LATE_REPLY)
    lease = Lease.asked(asked, length=LEASE)
    with keeper.holding(claim, lease=lease, key="mail:1") as held:
        late.wait()
        assert wait_until(lambda: not held.is_trusted(time.monotonic()), seconds=5)
        renewed_until = time.monotonic() + LEASE  # as far as the answer, had it come, would have carried
        assert wait_until(lambda: time.monotonic() > renewed_until)
        late.let_go()
        assert events.get(timeout=10).name is Name.LEASE_LOST
        assert not held.is_trusted(time.monotonic())
    ledger.close()
