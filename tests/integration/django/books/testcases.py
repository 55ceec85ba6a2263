"""Test cases of the project, as its people would write them; `manage.py test` runs them."""

from contextlib import closing, suppress

from django.apps import apps
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase, override_settings

from effectonce import TransactionEscaped
from tests.integration.django.books import tasks
from tests.integration.django.books.models import Charge
from tests.integration.django.proj import app, once


class OneTest:
    """Tests that use one key each: the second one finds nothing of the first."""

    def test_a_direct_call(self) -> None:
        assert [tasks.charge(1), tasks.charge(1)] == ["charged 1", "charged 1"]
        self.assert_charged_once()

    def test_an_eager_call(self) -> None:
        results = [tasks.charge.apply((1,)) for _ in range(2)]
        assert [result.get() for result in results] == ["charged 1", "charged 1"]
        self.assert_charged_once()

    def test_sends_that_are_always_eager(self) -> None:
        app.conf.task_always_eager = True
        try:
            assert tasks.charge.delay(1).get() == "charged 1"
            assert tasks.charge.delay(1).get() == "charged 1"
        finally:
            app.conf.task_always_eager = False
        self.assert_charged_once()

    def test_a_leased_task(self) -> None:
        inside = connection.in_atomic_block
        assert [tasks.mail(1), tasks.mail.apply((1,)).get()] == [inside, inside]
        assert [entry.key for entry in once.ledger.entries(state=None, limit=9)] == ["mail:1"]

    def test_a_body_that_closes_its_connection(self) -> None:
        with suppress(TransactionEscaped):
            tasks.closes(1)
            raise AssertionError
        assert not Charge.objects.exists()

    def test_a_view(self) -> None:
        """Under ATOMIC_REQUESTS the caller's transaction is the task's."""
        with override_settings(DEBUG=False):
            connection.settings_dict["ATOMIC_REQUESTS"] = True
            try:
                with suppress(ValueError):
                    self.client.get("/orders/1?fail=1")  # type: ignore[attr-defined]
                assert not Charge.objects.exists()
                assert self.client.get("/orders/1").content == b"charged 1"  # type: ignore[attr-defined]
            finally:
                connection.settings_dict["ATOMIC_REQUESTS"] = False
        self.assert_charged_once()

    def assert_charged_once(self) -> None:
        assert Charge.objects.count() == 1
        assert "charge:1" in {entry.key for entry in once.ledger.entries(state=None, limit=9)}


class InTestCase(OneTest, TestCase):
    """Each test is rolled back, entries and all."""

    def test_hooks_can_be_captured(self) -> None:
        with self.captureOnCommitCallbacks() as hooks:
            tasks.charge(1)
        assert len(hooks) == 2, "the body's own, and the one that sends its message"

    def test_a_guarded_task_that_is_sent_in_a_block_goes_with_it(self) -> None:
        """The block that wraps the test is none of the caller's; one of the caller's stores, and sends in its hook."""
        with app.connection() as broker, closing(broker.SimpleQueue("books")) as queue:
            tasks.mail.delay(1)
            with self.captureOnCommitCallbacks(execute=True) as hooks:
                with transaction.atomic():
                    tasks.mail.delay(2)
                    tasks.mail.delay_on_commit(3)
                with suppress(ValueError), transaction.atomic():
                    tasks.mail.delay(4)
                    raise ValueError
                assert [queue.get(timeout=10).payload[0] for _ in range(1)] == [[1]]
                assert queue.qsize() == 0
            assert len(hooks) == 2
            assert [queue.get(timeout=10).payload[0] for _ in range(2)] == [[2], [3]]
            assert queue.qsize() == 0


class InTransactionTestCase(OneTest, TransactionTestCase):
    """Each test commits, and the tables are emptied after it."""

    def test_the_ledger_has_its_models(self) -> None:
        assert apps.get_model("effectonce", "Entries").objects.count() == 0
        tasks.charge(1)
        assert apps.get_model("effectonce", "Entries").objects.get().key == "charge:1"
