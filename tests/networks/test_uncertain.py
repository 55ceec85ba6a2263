"""The answer to COMMIT is lost, and then nobody can be asked: the message is put off, and finds out later."""

import pytest

from effectonce.lab.proxy import Fault
from tests.networks.conftest import Market

OPTIONS = ("-I", "tests.networks.impatient")


@pytest.mark.parametrize("pair", ["redis+postgresql", "amqp+postgresql"])
@pytest.mark.parametrize(
    ("fault", "bodies"), [(Fault.LOST_REPLY, 1), (Fault.LOST_REQUEST, 2)], ids=["committed", "not committed"]
)
def test_a_commit_that_cannot_be_asked_about_is_put_off_and_comes_out_right(
    market: Market, order: int, fault: Fault, bodies: int
) -> None:
    market.send("quiet", 0).get(timeout=30)
    market.ledger.refuse()
    rule = market.ledger.when(b"COMMIT", fault, after=b"(?i)insert into charges")
    result = market.send("charge", order)
    rule.wait()
    market.wait_log("commit-uncertain")
    assert market.bodies(f"charge:{order}") == 1
    market.ledger.heal()
    assert result.get(timeout=30) == f"charged {order}"
    assert market.effects()[order] == 1
    assert market.bodies(f"charge:{order}") == bodies


def test_a_commit_in_the_dark_does_not_hold_its_worker(market: Market, order: int) -> None:
    """The claim was committed before it (rule 3), and a release of it would wait for that very commit."""
    rule = market.ledger.when(b"COMMIT", Fault.LATE_REQUEST, after=b"(?i)insert into charges")
    result = market.send("charge", order, headers={"effectonce_deferrals": 1})
    rule.wait()
    market.wait_log("commit-uncertain")
    market.send("quiet", order).get(timeout=20)
    rule.let_go()
    assert result.get(timeout=30) == f"charged {order}"
    assert market.effects()[order] == 2  # that of the other task too
    assert market.bodies(f"charge:{order}") == 1
