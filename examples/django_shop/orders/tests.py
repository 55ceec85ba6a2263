"""Tests of the shop, as Django projects have them: `python manage.py test`."""

from unittest.mock import patch

from django.core import mail
from django.core.management import call_command
from django.db import connection
from django.test import TestCase, TransactionTestCase
from receipts.tasks import send_receipt

from effectonce import TransactionEscaped
from orders.models import Order, Payment
from orders.tasks import charge


class Charging(TestCase):
    """A task is called inside the test's own transaction; its entry is rolled back with the rest."""

    def setUp(self) -> None:
        """Have an order."""
        self.order = Order.objects.create(customer="ann@example.com", total=30)

    def test_a_message_that_comes_twice_is_charged_once(self) -> None:
        with patch("orders.tasks.send_receipt.delay") as receipt:
            with self.captureOnCommitCallbacks(execute=True):
                said = [charge.apply((self.order.pk,)).get() for _ in range(2)]
            receipt.assert_called_once_with("ann@example.com", self.order.pk)
        assert said == ["charged 30", "charged 30"]
        assert Payment.objects.count() == 1

    def test_a_charge_that_fails_leaves_nothing_and_can_be_made_later(self) -> None:
        with patch("orders.models.Order.save", side_effect=ValueError), self.assertRaises(ValueError):
            charge(self.order.pk)
        assert Payment.objects.count() == 0
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

    def test_an_order_is_charged_after_its_request_has_committed(self) -> None:
        with patch("orders.tasks.send_receipt.delay"), patch("orders.views.charge.delay", side_effect=charge) as sent:
            answer = self.client.post("/orders", {"customer": "bob@example.com", "total": 7})
        assert answer.status_code == 202
        sent.assert_called_once()
        assert Payment.objects.get().amount == 7
        assert Order.objects.get().is_paid

    def test_the_checks_find_nothing(self) -> None:
        call_command("check", databases=["default"], fail_level="WARNING")
        call_command("makemigrations", check=True, dry_run=True, verbosity=0)
