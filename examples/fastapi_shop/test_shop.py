"""Tests of the shop, on a database of their own."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from effectonce import TransactionEscaped


@pytest.fixture(scope="session", autouse=True)
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The shop reads its addresses when it is loaded."""
    file = tmp_path_factory.mktemp("shop") / "shop.sqlite"
    os.environ.update(SHOP_DATABASE=str(file), SHOP_BROKER="memory://")
    from shop.celery import app
    from shop.database import create_tables, engine

    app.conf.result_backend = "cache+memory://"
    create_tables()
    yield file
    engine.dispose()


@pytest.fixture
def order() -> int:
    """An order of its own for each test."""
    from shop.database import Order, SessionLocal

    with SessionLocal.begin() as session:
        order = Order(customer="ann@example.com", total=30)
        session.add(order)
        session.flush()
        return order.id


def payments(order: int) -> list[int]:
    from shop.database import Payment, SessionLocal

    with SessionLocal() as session:
        return list(session.scalars(select(Payment.amount).where(Payment.order_id == order)))


def test_a_message_that_comes_twice_is_charged_once(order: int) -> None:
    from shop.celery import charge

    assert [charge.apply((order,)).get() for _ in range(2)] == ["charged 30", "charged 30"]
    assert payments(order) == [30]


def test_a_charge_that_fails_leaves_nothing_and_can_be_made_later(order: int) -> None:
    from shop.celery import charge

    with patch("shop.celery.Payment", side_effect=ValueError), pytest.raises(ValueError):  # noqa: PT011
        charge(order)
    assert payments(order) == []
    assert charge(order) == "charged 30"


def test_a_body_may_not_commit_its_connection(order: int) -> None:
    from shop.celery import charge, once

    with (
        patch("shop.celery.Payment", side_effect=lambda **_: once.connection.commit()),
        pytest.raises(TransactionEscaped),
    ):
        charge(order)
    assert payments(order) == []


def test_a_receipt_is_sent_once_under_one_key(order: int) -> None:
    from shop.celery import send_receipt

    assert send_receipt(order) == send_receipt(order)


def test_an_order_is_sent_to_be_charged_after_its_request_has_committed() -> None:
    from shop.celery import app as celery_app
    from shop.celery import charge
    from shop.main import app

    with TestClient(app) as client:
        answer = client.post("/orders", json={"customer": "bob@example.com", "total": 7})
    assert answer.status_code == 202
    with celery_app.connection() as broker, closing(broker.SimpleQueue("celery")) as queue:
        message = queue.get(timeout=10)
    assert message.headers["task"] == "shop.celery.charge"
    assert charge(*message.payload[0]) == "charged 7"
    assert payments(answer.json()["order"]) == [7]


def test_a_request_that_is_sent_again_makes_one_order_and_one_message() -> None:
    from shop.celery import app as celery_app
    from shop.database import Order, SessionLocal
    from shop.main import app

    headers = {"Idempotency-Key": "5f1d3b1e-order", "Authorization": "Bearer of carol"}
    new = {"customer": "carol@example.com", "total": 9}
    with TestClient(app) as client:
        first, again = (client.post("/orders", json=new, headers=headers) for _ in range(2))
        other = client.post("/orders", json={**new, "total": 10}, headers=headers)
    assert (first.status_code, again.status_code, other.status_code) == (202, 202, 422)
    assert first.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"
    with SessionLocal() as session:
        assert session.scalars(select(Order.total).where(Order.customer == "carol@example.com")).all() == [9]
    with celery_app.connection() as broker, closing(broker.SimpleQueue("celery")) as queue:
        assert queue.get(timeout=10).payload[0] == [first.json()["order"]]
        assert queue.qsize() == 0
