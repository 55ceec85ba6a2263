"""Messages that are due beyond the visibility timeout wait in the outbox, and go out when they are due."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery, group
from celery.app.trace import build_tracer

from effectonce import EffectOnce, OutboxUnsuitable, Transactional
from effectonce.domain.outbox import Stage
from tests.integration.outbox.conftest import Office, orders

FAR = 10_000


class Boom(Exception):
    """The body breaks."""


@pytest.fixture
def office(offices: Callable[..., Office], sqlite_url: str, redis_url: str) -> Office:
    """An app whose messages may be held for an hour."""
    office = offices(redis_url, sqlite_url, far_eta="park")
    office.app.conf.broker_transport_options = {"visibility_timeout": 3600}
    return office


@pytest.fixture
def receipt(office: Office) -> Any:
    """The task that is sent."""

    @office.app.task(name="receipt")
    def receipt(number: int) -> int:
        return number

    return receipt


def parked(office: Office) -> list[str]:
    return [each.message.task_id for each in office.waiting(Stage.PARKED)]


def test_a_far_message_is_parked_and_a_near_one_is_sent(office: Office, receipt: Any) -> None:
    """A06."""
    result = receipt.apply_async((1,), countdown=FAR)
    receipt.apply_async((2,), countdown=60)
    assert office.arguments() == [[2]]
    assert parked(office) == [result.id]
    assert office.once.relay().relay() == 0, "it is not due yet"


def test_a_parked_message_goes_out_when_it_is_due(office: Office, receipt: Any) -> None:
    result = receipt.apply_async((1,), countdown=FAR)
    assert office.relay_all() == 1
    (message,) = office.arrived()
    assert message.headers["id"] == result.id
    assert message.headers["eta"] is not None
    assert office.waiting() == []


def test_a_body_parks_with_its_work(office: Office, receipt: Any) -> None:
    @office.app.task(name="order", once=Transactional("order:{number}"))
    def order(number: int) -> None:
        receipt.apply_async((number,), countdown=FAR, task_id=str(number))
        if number < 0:
            raise Boom

    with pytest.raises(Boom):
        order(-1)
    order(1)
    assert parked(office) == ["1"]


def test_a_far_retry_is_parked_though_its_body_is_rolled_back(office: Office) -> None:
    @office.app.task(name="order", bind=True, once=Transactional("order:{number}"), max_retries=3)
    def order(self: Any, number: int) -> None:
        office.once.session.execute(orders.insert().values(number=number))
        raise self.retry(countdown=FAR)

    office.app.finalize()
    task_id = uuid.uuid4().hex
    info = {"exchange": "", "routing_key": "celery", "redelivered": False, "priority": 0}
    request = {"id": task_id, "task": order.name, "delivery_info": info, "retries": 0}
    _, ending, *_ = build_tracer(order.name, order, app=office.app)(task_id, [1], {}, request)
    assert ending.state == "RETRY"
    assert (office.numbers, office.arrived(), parked(office)) == ([], [], [task_id])


def test_a_parked_task_is_revoked_by_its_result_and_by_command(office: Office, receipt: Any) -> None:
    first = receipt.apply_async((1,), countdown=FAR)
    members = group(receipt.s(2), receipt.s(3)).apply_async(countdown=FAR)
    kept = receipt.apply_async((4,), countdown=FAR)
    first.revoke()
    office.app.control.revoke([each.id for each in members])
    assert parked(office) == [kept.id]


def test_a_ledger_without_an_outbox_cannot_park(redis_url: str) -> None:
    app = Celery(broker=redis_url, set_as_current=False)
    EffectOnce(app, ledger="memory://no-outbox", far_eta="park")
    with pytest.raises(OutboxUnsuitable):
        app.send_task("receipt", countdown=FAR)
    app.close()
