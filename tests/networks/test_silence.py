"""A ledger on Redis does what it is asked, and its answer never comes; the connection stays open.

The client gives up after a while and asks once more. Leases are far longer than that: who would have to wait for its
own claim to end fails.
"""

import pytest

from effectonce.lab.proxy import Fault
from tests.networks.claims import strike
from tests.networks.conftest import Market

QUERY = "?socket_timeout=0.5"


@pytest.fixture
def pair() -> str:
    return "redis+redis"


@pytest.mark.parametrize("question", ["claim", "complete"])
def test_silence_neither_doubles_an_effect_nor_makes_it_wait_for_itself(
    market: Market, order: int, question: str
) -> None:
    silence = strike(market, question, Fault.LATE_REPLY)
    result = market.send("mail", order)
    silence.wait()
    assert result.get(timeout=20) == f"mailed {order}"
    assert market.bodies(f"mail:{order}") == 1
    assert len(market.outside(f"mail:{order}")) == 1
    assert "effect.deferred" not in market.logs()


def test_silence_at_a_release_does_not_keep_the_retry(market: Market, order: int) -> None:
    silence = strike(market, "release", Fault.LATE_REPLY)
    result = market.send("flaky_mail", order, 2)
    silence.wait()
    assert result.get(timeout=20) == "at try 2"
    assert market.bodies(f"flaky-mail:{order}") == 3
    assert market.outside(f"flaky-mail:{order}") == [f"flaky-mail:{order}"]


def test_a_ledger_that_cannot_be_asked_puts_the_message_off(market: Market, order: int) -> None:
    lost = strike(market, "claim", Fault.LOST_REQUEST, times=5)
    result = market.send("mail", order)
    lost.wait(4)
    assert result.get(timeout=20) == f"mailed {order}"
    assert "effect.deferred" in market.logs()
    assert market.bodies(f"mail:{order}") == 1
