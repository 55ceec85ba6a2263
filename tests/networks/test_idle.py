"""Connections that idled, and were cut, reset, or forgotten by a firewall that drops each packet from then on."""

import pytest

from tests.networks.conftest import Market

_FAST = "?tcp_user_timeout=1000&connect_timeout=2"
QUERY = {"redis+postgresql": _FAST, "amqp+postgresql": _FAST, "redis+redis": "?socket_timeout=1"}
"""A worker's own limits are 30 and 5 seconds."""

TASKS = [("redis+postgresql", "charge"), ("redis+postgresql", "mail"), ("redis+redis", "mail")]
LOSSES = {
    "cut": lambda network: network.cut(),
    "reset": lambda network: network.cut(reset=True),
    "forgotten": lambda network: network.forget(),
}
losses = pytest.mark.parametrize("lose", LOSSES.values(), ids=LOSSES)


@losses
@pytest.mark.parametrize(("pair", "task"), TASKS)
def test_a_ledgers_connection_that_was_lost_while_idle_costs_no_effect_and_no_attempt(
    market: Market, order: int, task: str, lose: object
) -> None:
    market.send(task, order).get(timeout=30)
    assert callable(lose)
    lose(market.ledger)
    again = order + 5000
    assert market.send(task, again).get(timeout=30)
    assert [market.bodies(f"{task}:{each}") for each in (order, again)] == [1, 1]
    assert "effect.deferred" not in market.logs()
    if task == "charge":
        assert [market.effects()[each] for each in (order, again)] == [1, 1]


@pytest.mark.parametrize("pair", ["redis+redis", "amqp+postgresql"])
def test_a_brokers_connection_that_was_cut_while_idle_loses_no_copy(market: Market, order: int) -> None:
    """The connection that confirms was used before, so that it idles."""
    for each in (order, order + 5000):
        market.shut(f"mail-{each}")
        first = market.send("mail", each)
        market.wait_at(f"mail-{each}")
        market.broker.cut()
        second = market.send("mail", each)
        market.add(concurrency=1).wait_ready()
        market.wait(lambda: market.logs().count("effect.deferred") > 0, "a copy was made")
        market.open(f"mail-{each}")
        assert [result.get(timeout=60) for result in (first, second)] == [f"mailed {each}"] * 2
        assert len(set(market.outside(f"mail:{each}"))) == 1


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_a_worker_whose_ledger_stays_away_stops_consuming_until_it_answers(market: Market, order: int) -> None:
    """Rule 9: messages stay in the queue; each would be copied round and round."""
    market.send("mail", order).get(timeout=30)
    market.ledger.refuse()
    market.ledger.cut()
    market.wait_log("ledger.lost")
    waiting = market.send("mail", order + 5000)
    market.wait(lambda: market.waiting() == 1, "the message waits in its queue")
    tried = market.ledger.refused
    market.wait(lambda: market.ledger.refused > tried + 1, "the sentry looked again")
    assert market.waiting() == 1
    assert "effect.deferred" not in market.logs()
    market.ledger.heal()
    market.wait_log("ledger.found")
    assert waiting.get(timeout=30) == f"mailed {order + 5000}"
    assert market.bodies(f"mail:{order + 5000}") == 1
