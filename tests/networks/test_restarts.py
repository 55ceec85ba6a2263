"""Ledger and broker are killed and started again while a worker is at work."""

from typing import Any

import pytest
import redis

from effectonce.lab.servers.server import Server
from tests.networks.conftest import Market
from tests.services import Fleet

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


def sent(market: Market, task: str) -> list[str]:
    """Send an order each, with confirmation: what RabbitMQ has not confirmed it may lose when it is killed."""
    options = {**market.app.conf.broker_transport_options, "confirm_publish": True}
    with market.app.connection_for_write(transport_options=options) as connection:
        return [market.send(task, order, connection=connection).id for order in ORDERS]


def in_hand(market: Market, victim: str) -> int:
    """Messages that a killed broker may lose: kombu pops one from Redis before it notes that it holds it."""
    if victim != "redis":
        return 0
    with redis.Redis.from_url(market.env["SHOP_BROKER"]) as client:
        return 1 if client.llen("celery") == client.hlen("unacked") == 0 else 0


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
    """But for the one message that Redis had in its hand."""
    server = server_of(fleet, victim)
    task = "mail" if market.pair.endswith("+redis") else "charge"
    ids = sent(market, task)
    market.wait(lambda: sum(market.bodies(f"{task}:{order}") for order in ORDERS) >= ENOUGH, "load")
    server.kill()
    market.wait(lambda: not server.is_running, "the server is gone")
    server.start()

    def done() -> list[int]:
        states = market.states(ids)
        return [order for order, state in zip(ORDERS, states, strict=True) if state == "SUCCESS"]

    market.supervise(lambda: len(done()) >= len(ORDERS) - in_hand(market, victim), "each message has an outcome")
    effects = market.effects()
    for order in ORDERS:
        count = effects.get(order, 0) if task == "charge" else len(set(market.outside(f"mail:{order}")))
        assert count == 1 or (count == 0 and order not in done())
