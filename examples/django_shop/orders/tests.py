"""Tests of the shop, as Django projects have them: `python manage.py test`."""

from contextlib import closing
from unittest.mock import patch

from django.apps import apps
from django.core import mail
from django.core.management import call_command
from django.db import connection
from django.test import TestCase, TransactionTestCase
from receipts.tasks import send_receipt
from shop.celery import app

from effectonce import TransactionEscaped
from orders.models import Order, Payment
from orders.tasks import charge


def stored_messages() -> list[str]:
    """The tasks whose messages wait for this test's transaction, which never commits."""
    return list(apps.get_model("effectonce", "Outbox").objects.values_list("task", flat=True))


class Charging(TestCase):
    """A task is called inside the test's own transaction; its entry is rolled back with the rest."""

    def setUp(self) -> None:
        """Have an order."""
        self.order = Order.objects.create(customer="ann@example.com", total=30)

    def test_a_message_that_comes_twice_is_charged_once(self) -> None:
        said = [charge.apply((self.order.pk,)).get() for _ in range(2)]
        assert said == ["charged 30", "charged 30"]
        assert Payment.objects.count() == 1
        assert stored_messages() == ["receipts.tasks.send_receipt"]

    def test_a_charge_that_fails_leaves_nothing_and_can_be_made_later(self) -> None:
        with patch("orders.models.Order.save", side_effect=ValueError), self.assertRaises(ValueError):
            charge(self.order.pk)
        assert Payment.objects.count() == 0
        assert stored_messages() == []
        assert charge(self.order.pk) == "charged 30"

    def test_a_body_may_not_close_its_connection(self) -> None:
        with (
            patch("orders.models.Order.save", side_effect=lambda: connection.close()),
            self.assertRaises(TransactionEscaped),
        ):
            charge(self.order.pk)
        assert Payment.objects.count() == 0

    def test_a_receipt_is_sent_once(self) -> None:
        for _ in range(2):
            send_receipt("ann@example.com", self.order.pk)
        assert [each.to for each in mail.outbox] == [["ann@example.com"]]


class Ordering(TransactionTestCase):
    """Requests that really commit."""

    def test_an_order_is_sent_to_be_charged_after_its_request_has_committed(self) -> None:
        answer = self.client.post("/orders", {"customer": "bob@example.com", "total": 7})
        assert answer.status_code == 202
        with app.connection() as broker, closing(broker.SimpleQueue("celery")) as queue:
            message = queue.get(timeout=10)
        assert message.headers["task"] == "orders.tasks.charge"
        assert charge(*message.payload[0]) == "charged 7"
        assert Order.objects.get().is_paid

    def test_a_request_that_is_sent_again_makes_one_order_and_one_message(self) -> None:
        headers = {"Idempotency-Key": "5f1d3b1e-order", "Authorization": "Bearer of carol"}
        new = {"customer": "carol@example.com", "total": 9}
        first, again = (self.client.post("/orders", new, headers=headers) for _ in range(2))
        assert (first.status_code, again.status_code, first.json()) == (202, 202, again.json())
        assert again.headers["Idempotency-Replayed"] == "true"
        assert self.client.post("/orders", {**new, "total": 10}, headers=headers).status_code == 422
        assert Order.objects.get().total == 9
        with app.connection() as broker, closing(broker.SimpleQueue("celery")) as queue:
            assert queue.get(timeout=10).payload[0] == [first.json()["order"]]
            assert queue.qsize() == 0

    def test_the_checks_find_nothing(self) -> None:
        call_command("check", databases=["default"], fail_level="WARNING")
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)
