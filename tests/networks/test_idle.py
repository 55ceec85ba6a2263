"""Connections that idled, and were cut, reset, or forgotten by a firewall that drops each packet from then on."""

import pytest

from tests.networks.conftest import Market

_FAST = "?tcp_user_timeout=1000&connect_timeout=2"
QUERY = {"redis+postgresql": _FAST, "amqp+postgresql": _FAST, "redis+redis": "?socket_timeout=1"}
"""A worker's own limits are 30 and 5 seconds."""

CONCURRENCY = 2
LEASE = 3.0  # on RabbitMQ a copy waits for what is left of it
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
    _two_at_once(market, order)
    market.broker.cut()
    _two_at_once(market, order + 5000)


def _two_at_once(market: Market, order: int) -> None:
    market.shut(f"mail-{order}")
    first = market.send("mail", order)
    market.wait_at(f"mail-{order}")
    second = market.send("mail", order)
    market.wait(lambda: f"mail:{order} " in market.deferred(), "a copy was made")
    market.open(f"mail-{order}")
    assert [result.get(timeout=60) for result in (first, second)] == [f"mailed {order}"] * 2
    assert len(set(market.outside(f"mail:{order}"))) == 1


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_a_worker_whose_ledger_stays_away_stops_consuming_until_it_answers(market: Market, order: int) -> None:
    """Rule 9: messages stay in the queue; each would be copied round and round."""
    market.send("mail", order).get(timeout=30)
    market.ledger.refuse()
    market.ledger.cut()
    market.wait_log("stopped consuming")
    waiting = market.send("mail", order + 5000)
    market.wait(lambda: market.waiting() == 1, "the message waits in its queue")
    tried = market.ledger.refused
    market.wait(lambda: market.ledger.refused > tried + 1, "the sentry looked again")
    assert market.waiting() == 1
    assert "effect.deferred" not in market.logs()
    market.ledger.heal()
    market.wait_log("consuming again")
    assert waiting.get(timeout=30) == f"mailed {order + 5000}"
    assert market.bodies(f"mail:{order + 5000}") == 1
