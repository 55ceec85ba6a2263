"""What is sent inside `atomic` goes with it: guarded tasks, and Celery's own ``delay_on_commit``."""

from contextlib import closing, suppress
from typing import Any

import pytest
from celery.contrib.django.task import DjangoTask
from django.db import connections, transaction
from kombu.connection import Connection

from effectonce import EffectOnce, Leased, SentInTransaction, Transactional
from tests.integration.django.books.models import Charge


class Boom(Exception):
    """The block breaks."""


def _mail(_number: int) -> None: ...


def _note(_number: int) -> None: ...


class Sent:
    """The ids of what the broker got, straight or out of the outbox, in their order."""

    def __init__(self, once: EffectOnce) -> None:
        self._queue = once.app.conf.task_default_queue = once.app.main
        self._ids: list[str] = []

    @property
    def ids(self) -> list[str]:
        with Connection("memory://") as broker, closing(broker.SimpleQueue(self._queue)) as queue:
            for _ in range(queue.qsize()):
                message = queue.get(block=False)
                message.ack()
                self._ids.append(message.headers["id"])
        return self._ids


@pytest.fixture
def sent(once: EffectOnce) -> Sent:
    """What goes to the broker."""
    return Sent(once)


@pytest.fixture
def mail(once: EffectOnce) -> Any:
    """A guarded task of Celery's Django kind."""
    return once.app.task(_mail, name="mail", base=DjangoTask, once=Leased("mail:{_number}"))


@pytest.fixture
def note(once: EffectOnce) -> Any:
    """One that is not guarded."""
    return once.app.task(_note, name="note", base=DjangoTask)


def rows(alias: str) -> int:
    with connections[alias].cursor() as cursor:
        cursor.execute("select count(*) from effectonce_outbox")
        return int(cursor.fetchone()[0])


def test_a_guarded_task_is_stored_in_the_block_and_another_one_is_sent_at_once(
    alias: str, mail: Any, note: Any, sent: Sent
) -> None:
    with transaction.atomic(using=alias):
        Charge.objects.using(alias).create(order=1)
        mail.apply_async((1,), task_id="kept")
        note.apply_async((1,), task_id="plain")
        with suppress(Boom), transaction.atomic(using=alias):
            mail.apply_async((2,), task_id="lost")
            raise Boom
        assert (sent.ids, rows(alias)) == (["plain"], 1)
    assert (sent.ids, rows(alias)) == (["plain", "kept"], 0)
    with suppress(Boom), transaction.atomic(using=alias):
        mail.apply_async((3,), task_id="rolled back")
        raise Boom
    mail.apply_async((4,), task_id="outside")
    assert (sent.ids[2:], rows(alias)) == (["outside"], 0)


def test_on_commit_joins_the_outbox_where_there_is_one(
    once: EffectOnce, alias: str, mail: Any, note: Any, sent: Sent
) -> None:
    with transaction.atomic(using=alias), once.outbox():
        note.delay_on_commit(1)
        note.apply_async_on_commit((2,))
    assert len(sent.ids) == 2
    with transaction.atomic(using=alias):
        mail.delay_on_commit(1)
        assert (len(sent.ids), rows(alias)) == (2, 1)
    assert (len(sent.ids), rows(alias)) == (3, 0)


def test_on_commit_in_a_body_commits_with_its_work(once: EffectOnce, alias: str, note: Any, sent: Sent) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        note.apply_async_on_commit((x,), task_id=str(x))
        if x < 0:
            raise Boom

    with suppress(Boom):
        work(-1)
    work(1)
    assert sent.ids == ["1"]


@pytest.mark.parametrize("alias", ["sqlite"], indirect=True)
def test_a_block_on_another_database_sends_in_its_hook(
    once: EffectOnce, mail: Any, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight: list[Any] = []
    monkeypatch.setattr("effectonce.app.transactions.send_now", lambda _once, messages: straight.extend(messages))
    with suppress(Boom), transaction.atomic(using="elsewhere"):
        mail.apply_async((1,), task_id="lost")
        raise Boom
    with transaction.atomic(using="elsewhere"):
        mail.apply_async((1,), task_id="kept")
        assert straight == []
    assert ([each.task_id for each in straight], sent.ids) == (["kept"], [])
    assert once.outbox_store().depth().ready == 0


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_raise_refuses(alias: str, mail: Any, note: Any, sent: Sent, once: EffectOnce) -> None:
    once.app.conf.effectonce_send_in_transaction = "raise"
    once._settings = None
    with transaction.atomic(using=alias):
        for task in (mail, note):
            with pytest.raises(SentInTransaction):
                task.delay(1)
        note.delay_on_commit(2)
        assert sent.ids == []
    assert len(sent.ids) == 1
