"""What a body sends under Django goes with its `atomic` block, savepoints included."""

from contextlib import suppress
from typing import Any

import pytest
from django.db import connections, transaction

from effectonce import EffectOnce, Transactional
from tests.integration.django.books.models import Charge


class Boom(Exception):
    """The body breaks."""


@pytest.fixture
def sent(once: EffectOnce) -> list[Any]:
    """What goes to the broker."""
    seen: list[Any] = []

    class Broker:
        def send(self, messages: Any) -> list[None]:
            seen.extend(each.task_id for each in messages)
            return [None] * len(messages)

    vars(once.dispatcher)["_broker"] = Broker()
    return seen


@pytest.fixture
def receipt(once: EffectOnce) -> Any:
    """The task that is sent."""

    @once.app.task(name="receipt")
    def receipt() -> None: ...

    return receipt


def test_a_failed_body_sends_nothing_and_a_good_one_after_its_commit(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        receipt.apply_async(task_id=str(x))
        assert sent == []
        if x < 0:
            raise Boom

    with suppress(Boom):
        work(-1)
    assert sent == []
    work(1)
    assert sent == ["1"]
    assert once.outbox_store().depth().ready == 0


def test_a_nested_block_that_is_rolled_back_takes_its_messages_along(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        receipt.apply_async(task_id="before")
        with suppress(Boom), transaction.atomic(using=alias):
            receipt.apply_async(task_id="lost")
            with transaction.atomic(using=alias):
                receipt.apply_async(task_id="lost inside")
            raise Boom
        with transaction.atomic(using=alias):
            receipt.apply_async(task_id="kept")
        Charge.objects.using(alias).create(order=x)

    work(1)
    assert sent == ["before", "kept"]


def test_a_body_inside_somebody_elses_block_sends_after_that_ones_commit(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        receipt.apply_async(task_id=str(x))

    with suppress(Boom), transaction.atomic(using=alias):
        work(1)
        raise Boom
    assert (sent, once.outbox_store().depth().ready) == ([], 0)
    with transaction.atomic(using=alias):
        work(1)
        assert sent == []
    assert sent == ["1"]


def test_a_body_that_may_escape_takes_messages_along_with_savepoints_too(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}", allow_escape=True))
    def work(x: int) -> None:
        with suppress(Boom), transaction.atomic(using=alias):
            receipt.apply_async(task_id="lost")
            raise Boom
        receipt.apply_async(task_id=str(x))

    work(1)
    assert sent == ["1"]


def test_what_a_request_sends_commits_with_its_transaction(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    with suppress(Boom), transaction.atomic(using=alias):
        Charge.objects.using(alias).create(order=1)
        with once.outbox():
            receipt.apply_async(task_id="lost")
        raise Boom
    assert (sent, once.outbox_store().depth().ready) == ([], 0)
    with transaction.atomic(using=alias):
        Charge.objects.using(alias).create(order=1)
        with once.outbox():
            receipt.apply_async(task_id="kept")
        assert sent == []
    assert sent == ["kept"]


def test_what_is_sent_in_a_savepoint_of_a_request_goes_with_it(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    with transaction.atomic(using=alias), once.outbox():
        receipt.apply_async(task_id="before")
        with suppress(Boom), transaction.atomic(using=alias):
            receipt.apply_async(task_id="lost")
            raise Boom
        with transaction.atomic(using=alias):
            receipt.apply_async(task_id="kept")
    assert sent == ["before", "kept"]


def test_a_transaction_inside_an_outbox_has_its_messages(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    """They are stored before that transaction commits: a death right after it loses none."""
    stored = []
    with once.outbox():
        with suppress(Boom), transaction.atomic(using=alias):
            receipt.apply_async(task_id="lost")
            raise Boom
        with transaction.atomic(using=alias):
            receipt.apply_async(task_id="kept")
            with connections[alias].cursor() as cursor:
                cursor.execute("select count(*) from effectonce_outbox")
                stored.append(cursor.fetchone())
        assert sent == ["kept"]
        receipt.apply_async(task_id="alone")
    assert (sent, stored) == (["kept", "alone"], [(1,)])


def test_an_outbox_that_is_left_by_an_error_sends_nothing(
    once: EffectOnce, alias: str, receipt: Any, sent: list[Any]
) -> None:
    with transaction.atomic(using=alias), suppress(Boom), once.outbox():
        receipt.apply_async(task_id="lost")
        raise Boom
    assert (sent, once.outbox_store().depth().ready) == ([], 0)
