"""A busy message is put off by a copy, a failed one by a retry, a finished one goes on: and the publish is lost.

Either the broker has the new message, or the old one comes again; both may be, and the effect takes place once.
"""

import pytest
from celery import chain
from celery.result import AsyncResult

from effectonce.lab.proxy import Fault, Rule
from tests.networks.conftest import Market

OPTIONS = ("-I", "tests.networks.impatient")
CONCURRENCY = 2
LEASE = 3.0  # on RabbitMQ a copy waits for what is left of it
PAIRS = ["redis+redis", "amqp+postgresql"]
PUBLISHES = {
    "redis": rb"LPUSH\r\n\$\d+\r\ncelery\r\n",
    "amqp": rb"\x00\x3c\x00\x28\x00\x00\x00\x06celery",  # basic.publish to the default exchange
}
on_both_brokers = pytest.mark.parametrize("pair", PAIRS)
lost = pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST], ids=["reply", "request"])


def strike(market: Market, fault: Fault) -> Rule:
    return market.broker.when(PUBLISHES[market.pair.partition("+")[0]], fault)


def send_two(market: Market, order: int) -> list[AsyncResult]:
    """Send a message whose body stays at its gate, and one more of the same key."""
    market.shut(f"mail-{order}")
    first = market.send("mail", order)
    market.wait_at(f"mail-{order}")
    return [first, market.send("mail", order)]


@on_both_brokers
@lost
def test_a_copy_whose_publish_was_lost_is_made_again(market: Market, order: int, fault: Fault) -> None:
    rule = strike(market, fault)
    results = send_two(market, order)
    rule.wait()
    market.open(f"mail-{order}")
    assert [result.get(timeout=30) for result in results] == [f"mailed {order}"] * 2
    assert market.bodies(f"mail:{order}") == 1
    assert len(market.outside(f"mail:{order}")) == 1


def test_two_copies_of_one_message_are_one_effect(market: Market, order: int) -> None:
    """The client of the broker publishes again by itself when it saw no reply: both copies arrive."""
    rule = strike(market, Fault.LOST_REPLY)
    results = send_two(market, order)
    rule.wait()
    market.wait(
        lambda: market.logs().count(f"[{results[1].id}] received") >= 3, "the message and two copies have arrived"
    )
    market.open(f"mail-{order}")
    assert [result.get(timeout=30) for result in results] == [f"mailed {order}"] * 2
    assert market.bodies(f"mail:{order}") == 1
    assert len(market.outside(f"mail:{order}")) == 1


@lost
@pytest.mark.parametrize(
    ("pair", "task"),
    [("redis+redis", "flaky_mail"), ("amqp+postgresql", "flaky_mail"), ("amqp+postgresql", "flaky")],
)
def test_a_retry_whose_publish_was_lost_comes_all_the_same(market: Market, order: int, task: str, fault: Fault) -> None:
    rule = strike(market, fault)
    result = market.send(task, order, 2)
    rule.wait()
    assert result.get(timeout=30) == "at try 2"
    if task == "flaky":
        assert market.effects()[order] == 1
    else:
        assert len(market.outside(f"flaky-mail:{order}")) == 1


@on_both_brokers
@pytest.mark.parametrize("task", ["mail", "flaky_mail"])
def test_a_broker_that_is_gone_for_a_while_loses_neither_copy_nor_retry(market: Market, order: int, task: str) -> None:
    strike(market, Fault.LOST_REQUEST)  # a connection that stands already breaks here, and no new one is let in
    market.broker.refuse()
    tried = market.broker.refused
    results = send_two(market, order) if task == "mail" else [market.send("flaky_mail", order, 1)]
    market.wait(lambda: market.broker.refused > tried + 3, "the publish was tried on new connections")
    market.broker.cut()
    market.wait_log("onnection to broker lost")
    market.broker.heal()
    market.open(f"mail-{order}")
    market.supervise(lambda: all(result.ready() for result in results), "all results are there")
    assert {result.get() for result in results} == {f"mailed {order}" if task == "mail" else "at try 1"}
    assert len(set(market.outside(f"{task.replace('_', '-')}:{order}"))) == 1


@on_both_brokers
def test_a_broker_that_never_confirms_does_not_hold_its_worker(market: Market, order: int) -> None:
    """The copy is made again on another connection; a confirmation that comes late is nobody's."""
    rule = strike(market, Fault.LATE_REPLY)
    results = send_two(market, order)
    rule.wait()
    strike(market, Fault.NOTHING).wait()
    market.open(f"mail-{order}")
    assert [result.get(timeout=30) for result in results] == [f"mailed {order}"] * 2
    assert market.bodies(f"mail:{order}") == 1


@on_both_brokers
@lost
def test_a_next_step_whose_publish_was_lost_is_sent_by_the_next_delivery(
    market: Market, order: int, fault: Fault
) -> None:
    rule = strike(market, fault)
    tail = chain(market.task("mail").si(order), market.task("shared").si(order)).apply_async()
    rule.wait()
    assert tail.get(timeout=30) == order
    assert market.bodies(f"mail:{order}") == 1
    assert market.bodies(f"shared:{order}") == 1
