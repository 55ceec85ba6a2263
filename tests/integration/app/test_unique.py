"""Sends that are told of an earlier one, up to the seam: nothing leaves this process."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from celery import Celery, chain, chord, group
from kombu.exceptions import OperationalError

from effectonce import EffectOnce, Exclusive, KeyInvalid, Leased, LedgerUnavailable, Unique
from effectonce.stores.memory import MemoryLedger


def same(x: int) -> int:
    return x


class Wire:
    """What the app would publish; may be cut."""

    def __init__(self, app: Celery) -> None:
        self.ids: list[str] = []
        self.is_cut = False
        sender = app.amqp.__dict__["send_task_message"]
        cell = next(c.cell_contents for c in sender.__closure__ if isinstance(c.cell_contents, list))
        cell[:] = [self.take]

    def take(self, _producer: Any, _name: str, message: Any, **_: Any) -> None:
        if self.is_cut:
            raise ConnectionError
        self.ids.append(message.headers["id"])


@pytest.fixture
def wire(app: Celery, once: EffectOnce) -> Wire:
    return Wire(app)


def test_a_second_send_sends_nothing_and_says_so(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Unique("w:{x}"))(same)
    first, second, other = work.delay(1), work.delay(1), work.delay(2)
    assert (first.duplicate, second.duplicate, other.duplicate) == (False, True, False)
    assert second.id == first.id
    assert wire.ids == [first.id, other.id]


def test_every_way_to_write_a_send_is_one_key(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Leased("w:{x}", at_send=Unique(until="started")))(same)
    first = work.delay(1)
    again = [work.delay(x=1), work.apply_async((1,), task_id="mine"), work.si(1).delay(), app.send_task("w", (1,))]
    assert {(result.id, result.duplicate) for result in again} == {(first.id, True)}


def test_a_task_without_unique_says_nothing(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Leased("w:{x}"))(same)
    plain = app.task(name="p")(same)
    results = [work.delay(1), work.delay(1), plain.delay(1)]
    assert [hasattr(result, "duplicate") for result in results] == [False] * 3
    assert len(wire.ids) == 3


def test_a_send_that_failed_reserves_nothing(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Unique("w:{x}"))(same)
    wire.is_cut = True
    with pytest.raises((OperationalError, ConnectionError)):
        work.apply_async((1,), retry=False)
    wire.is_cut = False
    assert not work.delay(1).duplicate


def test_where_the_leases_cannot_be_asked_nothing_is_sent(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Unique("w:{x}"))(same)
    away = LedgerUnavailable(ledger="memory://", reason="it is away")
    with patch.object(MemoryLedger, "reserve", side_effect=away), pytest.raises(LedgerUnavailable):
        work.delay(1)
    assert wire.ids == []


def test_what_others_wait_for_goes_out(app: Celery, once: EffectOnce, wire: Wire) -> None:
    """A member of a canvas is waited for under its own id."""
    work = app.task(name="w", once=Unique("w:{x}"))(same)
    work.delay(1)
    wholes: list[Callable[[], Any]] = [
        group([work.si(1), work.si(1)]).apply_async,
        chain(work.si(1), work.si(2)).apply_async,
        chord([work.si(1)], work.si(3)).apply_async,
        lambda: work.apply_async((1,), link=work.si(4)),
    ]
    sent = []
    for whole in wholes:
        before = len(wire.ids)
        whole()
        sent.append(len(wire.ids) - before)
    assert sent == [2, 1, 1, 1]


def test_a_reservation_lasts_from_when_its_message_is_due(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Unique("w:{x}", lease=10))(same)
    asked: list[float] = []

    def reserve(_store: MemoryLedger, _name: bytes, holder: str, seconds: float) -> str:
        asked.append(seconds)
        return holder

    with patch.object(MemoryLedger, "reserve", reserve):
        work.apply_async((1,), countdown=100)
        work.apply_async((1,))
    assert 105 < asked[0] <= 110
    assert asked[1] == 10


def test_reservations_live_where_the_leases_do(make_app: Callable[..., Celery]) -> None:
    app = make_app(effectonce_leases="memory://reserved-elsewhere")
    once = EffectOnce(app, ledger="memory://not-reserved-here")
    Wire(app)
    work = app.task(name="w", once=Leased("w:{x}", at_send=Unique()))(same)
    work.delay(1)
    assert len(MemoryLedger.named("reserved-elsewhere")._reserved) == 1
    assert len(MemoryLedger.named("not-reserved-here")._reserved) == 0
    assert once.leases.name == "memory://reserved-elsewhere"


def test_an_unnameable_send_fails_where_it_is_written(app: Celery, once: EffectOnce, wire: Wire) -> None:
    work = app.task(name="w", once=Exclusive("w:{x}", at_send=Unique()))(same)
    with pytest.raises(KeyInvalid):
        work.delay(None)
    assert wire.ids == []
