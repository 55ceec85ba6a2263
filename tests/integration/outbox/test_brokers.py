"""Batches on real brokers: all arrive in their order, a poison one is found, and an outage loses nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from effectonce.domain.outbox import Stage
from tests.integration.outbox.conftest import Office


@pytest.fixture(params=["redis", "amqp"])
def office(offices: Callable[..., Office], sqlite_url: str, request: pytest.FixtureRequest) -> Office:
    """An app on each broker."""
    return offices(request.getfixturevalue(f"{request.param}_url"), sqlite_url)


def fill(office: Office, number: int, **options: Any) -> Any:
    """Store messages that their process does not send."""

    @office.app.task(name="receipt")
    def receipt(number: int) -> int:
        return number

    office.dispatch_nothing()
    with office.once.outbox():
        for nth in range(number):
            receipt.apply_async((nth,), **options)
    return receipt


def test_a_batch_arrives_whole_and_in_its_order(office: Office) -> None:
    """More than a relay takes at once, and more than RabbitMQ's window."""
    fill(office, 520)
    assert office.relay_all() == 520
    assert office.arguments() == [[nth] for nth in range(520)]
    assert office.waiting() == []


def test_a_poison_message_is_found_in_its_batch(office: Office) -> None:
    """What goes with a poison one on RabbitMQ may arrive twice: the window does not say which one it was."""
    receipt = fill(office, 3)
    with office.engine.begin() as connection:
        connection.exec_driver_sql("update effectonce_outbox set properties = '{}' where id = 2")
    office.relay_all()
    assert {nth for (nth,) in office.arguments()} == {0, 2}
    (poison,) = office.waiting()
    assert (poison.message.task, poison.tries) == (receipt.name, 1)
    assert "priority" in poison.error


@pytest.mark.parametrize("office", ["amqp"], indirect=True)
def test_a_message_to_an_exchange_that_is_not_there_is_refused_and_the_others_go(office: Office) -> None:
    fill(office, 3)
    with office.engine.begin() as connection:
        connection.exec_driver_sql("update effectonce_outbox set exchange = 'nowhere' where id = 2")
    office.relay_all()
    assert {nth for (nth,) in office.arguments()} == {0, 2}
    (poison,) = office.waiting()
    assert "NOT_FOUND" in poison.error


@pytest.mark.parametrize("server", ["redis_server", pytest.param("rabbitmq_server", marks=pytest.mark.soak)])
def test_a_broker_that_is_down_loses_nothing(
    offices: Callable[..., Office], sqlite_url: str, request: pytest.FixtureRequest, server: str
) -> None:
    broker = request.getfixturevalue(server)
    office = offices(broker.fresh_url(), sqlite_url)
    broker.kill()

    @office.app.task(name="receipt")
    def receipt(number: int) -> int:
        return number

    with office.once.outbox():
        for nth in range(5):
            receipt.delay(nth)
    assert office.relay_all() == 0
    assert [(each.tries, each.stage) for each in office.waiting()] == [(0, Stage.READY)] * 5
    broker.start()
    office.relay_all()
    assert office.arguments() == [[nth] for nth in range(5)]
