"""The answer of a ledger is lost while an effect outside it is claimed, carried out and settled.

Leases are far longer than any of these tests waits: who would have to wait for its own claim to end fails.
"""

import pytest

from effectonce.lab.proxy import Fault
from tests.networks.claims import LEDGERS, strike
from tests.networks.conftest import Market

FAULTS = [Fault.LOST_REPLY, Fault.LOST_REQUEST]
by_name = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower().replace("_", " "))


@by_name
@pytest.mark.parametrize("pair", LEDGERS)
@pytest.mark.parametrize("question", ["claim", "complete"])
def test_a_lost_answer_neither_doubles_an_effect_nor_makes_it_wait_for_itself(
    market: Market, order: int, question: str, fault: Fault
) -> None:
    strike(market, question, fault)
    result = market.send("mail", order)
    assert result.get(timeout=20) == f"mailed {order}"
    assert [rule.count for rule in market.ledger.rules] == [1]
    assert market.bodies(f"mail:{order}") == 1
    assert len(market.outside(f"mail:{order}")) == 1


@by_name
@pytest.mark.parametrize("pair", LEDGERS)
def test_a_retry_whose_release_was_not_answered_goes_on(market: Market, order: int, fault: Fault) -> None:
    strike(market, "release", fault)
    result = market.send("flaky_mail", order, 2)
    assert result.get(timeout=20) == "at try 2"
    assert [rule.count for rule in market.ledger.rules] == [1]
    assert market.bodies(f"flaky-mail:{order}") == 3
    assert market.outside(f"flaky-mail:{order}") == [f"flaky-mail:{order}"]


@by_name
def test_a_delivery_that_may_repeat_does_not_wait_for_the_claim_it_lost_sight_of(
    market: Market, order: int, fault: Fault
) -> None:
    """It commits a claim before its work: two commits, and the answer to the first is lost (rule 3)."""
    strike(market, "claim", fault)
    result = market.send("charge", order, headers={"effectonce_deferrals": 1})
    assert result.get(timeout=20) == f"charged {order}"
    assert [rule.count for rule in market.ledger.rules] == [1]
    assert market.bodies(f"charge:{order}") == 1
    assert market.effects()[order] == 1
