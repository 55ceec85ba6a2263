"""What RabbitMQ does with messages whose holder is slow, cut off, or dies again and again."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.worker.harness import Shop
from tests.services import Fleet, RabbitMQ

QUORUM = {
    "task_default_queue_type": "quorum",
    "worker_detect_quorum_queues": True,
    "task_default_exchange_type": "topic",
}
CLOSE = '[rabbit_networking:close_connection(P, "a test") || P <- rabbit_networking:connections()].'


@pytest.fixture
def server(fleet: Fleet) -> RabbitMQ:
    server = fleet.rabbitmq()
    if not isinstance(server, RabbitMQ):
        pytest.skip("a server that is not ours keeps its settings and its connections")
    return server


@pytest.fixture
def conf() -> dict[str, Any]:
    """Settings of the app; a test parametrizes them."""
    return {}


@pytest.fixture
def rabbit(fleet: Fleet, server: RabbitMQ, conf: dict[str, Any], pool: str) -> Iterator[Shop]:
    shop = Shop(fleet, "amqp+postgresql", pool=pool, settings={"SHOP_CONF": json.dumps(conf)})
    yield shop
    shop.close()


@pytest.mark.parametrize("conf", [{"worker_cancel_long_running_tasks_on_connection_loss": True}])
def test_a_body_that_celery_breaks_off_with_its_connection_runs_again_and_takes_effect_once(
    rabbit: Shop, server: RabbitMQ
) -> None:
    """A15: what the first body wrote is rolled back; it is the second that commits."""
    rabbit.shut("charge-15")
    rabbit.start()
    result = rabbit.send("charge", 15, retry=True)
    rabbit.wait_at("charge-15")
    server.control("eval", CLOSE)
    rabbit.wait_bodies("charge:15", 2)
    rabbit.open("charge-15")
    assert result.get(timeout=60) == "charged 15"
    assert rabbit.effects() == {15: 1}


@pytest.mark.soak
@pytest.mark.parametrize("pool", ["gevent"])
def test_early_acknowledgements_that_got_lost_double_nothing(rabbit: Shop, server: RabbitMQ) -> None:
    """A17: an acknowledgement that was sent is not one that arrived; under gevent many bodies are cut off at once."""
    orders = range(25)
    for order in orders:
        rabbit.shut(f"early-{order}")
    rabbit.add(concurrency=25)
    results = [rabbit.send("early", order) for order in orders]
    for order in orders:
        rabbit.wait_at(f"early-{order}")
    server.control("eval", CLOSE)
    again = [rabbit.send("early", order, task_id=result.id, retry=True) for order, result in enumerate(results)]
    for order in orders:
        rabbit.open(f"early-{order}")
    assert {result.get(timeout=60) for result in [*results, *again]} == {f"early {order}" for order in orders}
    assert [len(rabbit.outside(f"early:{order}")) for order in orders] == [1] * len(orders)


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_body_longer_than_the_consumer_timeout_takes_effect_once(rabbit: Shop, server: RabbitMQ) -> None:
    """A21, L15: the broker closes the channel, the worker ends with an error, and its message kills the next worker.

    A supervisor starts workers again and again. Without a guard each of them runs the body from its beginning, and
    none can ever acknowledge. The first body's commit ends it.
    """
    set_consumer_timeout(server, milliseconds=4000, look_every=1000)
    try:
        result = rabbit.send("charge", 21, kwargs={"pause": 12})
        rabbit.wait(lambda: bool(rabbit.start()) and result.ready(), "the call has ended", seconds=120)
    finally:
        set_consumer_timeout(server, milliseconds=1_800_000, look_every=60_000)
    assert (result.state, result.result) == ("SUCCESS", "charged 21")
    assert rabbit.effects() == {21: 1}
    assert "PRECONDITION_FAILED" in rabbit.all_logs()


def set_consumer_timeout(server: RabbitMQ, *, milliseconds: int, look_every: int) -> None:
    """For channels that are opened from now on."""
    server.control(
        "eval",
        f"application:set_env(rabbit, consumer_timeout, {milliseconds}),"
        f"application:set_env(rabbit, channel_tick_interval, {look_every}).",
    )


@pytest.mark.soak
@pytest.mark.parametrize("conf", [QUORUM])
def test_a_delivery_that_waits_for_a_busy_key_is_delayed_by_the_broker(rabbit: Shop) -> None:
    """On quorum queues Celery leaves countdowns to RabbitMQ: no worker holds the copy, and it comes back."""
    rabbit.shut("charge-1")
    rabbit.start()
    first = rabbit.send("charge", 1)
    rabbit.wait_at("charge-1")
    second = rabbit.send("charge", 1)
    later = rabbit.send("charge", 2, countdown=2)
    rabbit.wait_log("effect.deferred")
    rabbit.open("charge-1")
    assert [each.get(timeout=60) for each in (first, second, later)] == ["charged 1", "charged 1", "charged 2"]
    assert rabbit.effects() == {1: 1, 2: 1}


@pytest.mark.soak
@pytest.mark.parametrize("conf", [QUORUM])
@pytest.mark.parametrize(("limit", "end"), [(20, "HELD"), (2, "PENDING")])
def test_a_delivery_limit_above_the_limit_of_deaths_leaves_a_poisonous_message_to_the_ledger(
    rabbit: Shop, server: RabbitMQ, limit: int, end: str
) -> None:
    """Below it, the broker drops the message without a word, and its call is PENDING for ever, as the README says."""
    host = rabbit.env["SHOP_BROKER"].rpartition("/")[2]
    server.control(
        "set_policy", "-p", host, "limit", ".*", json.dumps({"delivery-limit": limit}), "--apply-to", "queues"
    )
    rabbit.start()
    result = rabbit.send("deadly", 3)
    starts = 1 + 3 if end == "HELD" else 1 + limit
    rabbit.wait_bodies("deadly:3", starts)
    if end == "HELD":
        rabbit.wait(lambda: result.state == "HELD", "the message is held")
    rabbit.wait(lambda: queued(server, host) == 0, "the queue is empty")
    assert (result.state, rabbit.bodies("deadly:3")) == (end, starts)


def queued(server: RabbitMQ, host: str) -> int:
    """Messages in all queues of a virtual host, held ones too."""
    listed = server.control("list_queues", "-p", host, "messages", "--no-table-headers")
    return sum(int(line) for line in listed.split())
