"""Tests of the shop, on a database of their own."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from flask import Flask
from shop import create_app, create_tables
from shop.extensions import db, once
from shop.models import Order, Payment
from shop.tasks import charge, send_receipt

from effectonce import TransactionEscaped


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    """A shop with one order."""
    app = create_app(
        SQLALCHEMY_DATABASE_URI=f"sqlite:///{tmp_path / 'shop.sqlite'}",
        CELERY={"broker_url": "memory://", "result_backend": "cache+memory://"},
    )
    create_tables(app)
    with app.app_context():
        db.session.add(Order(customer="ann@example.com", total=30))
        db.session.commit()
        yield app
        once.ledger.close()
        db.session.remove()
        db.engine.dispose()


def payments() -> list[int]:
    return list(db.session.scalars(db.select(Payment.amount)))


def test_a_message_that_comes_twice_is_charged_once(app: Flask) -> None:
    assert [charge.apply((1,)).get() for _ in range(2)] == ["charged 30", "charged 30"]
    assert payments() == [30]


def test_a_charge_that_fails_leaves_nothing_and_can_be_made_later(app: Flask) -> None:
    with patch("shop.tasks.Payment", side_effect=ValueError), pytest.raises(ValueError):  # noqa: PT011
        charge(1)
    assert payments() == []
    assert charge(1) == "charged 30"


def test_a_body_may_not_commit_its_session(app: Flask) -> None:
    with patch("shop.tasks.Payment", side_effect=lambda **_: db.session.commit()), pytest.raises(TransactionEscaped):
        charge(1)
    assert payments() == []


def test_a_receipt_is_sent_once_under_one_key(app: Flask) -> None:
    assert send_receipt(1) == send_receipt(1)


def test_an_order_is_sent_to_be_charged_after_its_request_has_committed(app: Flask) -> None:
    answer = app.test_client().post("/orders", data={"customer": "bob@example.com", "total": 7})
    assert answer.status_code == 202
    celery_app = app.extensions["celery"]
    with celery_app.connection() as broker, closing(broker.SimpleQueue("celery")) as queue:
        message = queue.get(timeout=10)
    assert message.headers["task"] == "shop.tasks.charge"
    assert charge(*message.payload[0]) == "charged 7"
    assert payments() == [7]


def test_a_request_that_is_sent_again_makes_one_order_and_one_message(app: Flask) -> None:
    headers = {"Idempotency-Key": "5f1d3b1e-order", "Authorization": "Bearer of carol"}
    new = {"customer": "carol@example.com", "total": 9}
    client = app.test_client()
    first, again = (client.post("/orders", data=new, headers=headers) for _ in range(2))
    assert client.post("/orders", data={**new, "total": 10}, headers=headers).status_code == 422
    assert (first.status_code, again.status_code, first.json) == (202, 202, again.json)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert list(db.session.scalars(db.select(Order.total).where(Order.customer == "carol@example.com"))) == [9]
    with app.extensions["celery"].connection() as broker, closing(broker.SimpleQueue("celery")) as queue:
        assert queue.get(timeout=10).payload[0] == [first.json["order"]]
        assert queue.qsize() == 0
