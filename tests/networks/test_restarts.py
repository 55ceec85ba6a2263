"""Ledger and broker are killed and started again while a worker is at work."""

from typing import Any

import pytest

from tests.networks.conftest import Market
from tests.services import Fleet
from tests.services.server import Server

OPTIONS = ("-I", "tests.networks.impatient")
CONCURRENCY = 2
LEASE = 3.0
ORDERS = range(9000, 9040)
ENOUGH = 8
"""Bodies that have run before the server dies."""


def server_of(fleet: Fleet, name: str) -> Server:
    server: Any = {"redis": fleet.redis, "amqp": fleet.rabbitmq, "postgresql": fleet.postgresql}[name]()
    if not isinstance(server, Server):
        pytest.skip("a server that is not ours is not killed")
    return server


@pytest.mark.parametrize(
    ("pair", "victim"),
    [
        ("redis+postgresql", "postgresql"),
        ("redis+postgresql", "redis"),
        ("amqp+postgresql", "amqp"),
        ("redis+redis", "redis"),
    ],
)
def test_a_server_that_is_killed_under_load_doubles_nothing_and_loses_nothing(
    market: Market, fleet: Fleet, victim: str
) -> None:
    server = server_of(fleet, victim)
    task = "mail" if market.pair.endswith("+redis") else "charge"
    ids = [market.send(task, order).id for order in ORDERS]
    market.wait(lambda: sum(market.bodies(f"{task}:{order}") for order in ORDERS) >= ENOUGH, "load")
    server.kill()
    market.wait(lambda: not server.is_running, "the server is gone")
    server.start()
    market.supervise(lambda: None not in market.states(ids), "each message has an outcome")
    assert set(market.states(ids)) == {"SUCCESS"}
    if task == "charge":
        assert market.effects() == dict.fromkeys(ORDERS, 1)
    else:
        assert [len(set(market.outside(f"mail:{order}"))) for order in ORDERS] == [1] * len(ORDERS)
