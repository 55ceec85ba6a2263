"""Rule 16: a message that was due longer ago than entries are kept is held, not run: its entry may be gone."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import Ignore

from effectonce import EffectOnce, Exclusive, Leased, Natural, Transactional
from effectonce.domain.claims import State
from tests.integration.app.test_modes import noting
from tests.integration.app.test_unique import Wire

DAY = 86_400.0
ONE = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def notes() -> list[int]:
    return []


@pytest.fixture
def work(app: Celery, once: EffectOnce, notes: list[int]) -> Any:
    Wire(app)

    def body(x: int) -> int:
        notes.append(x)
        return x

    return app.task(name="w", once=Leased("w:{x}", keep=DAY))(body)


@contextmanager
def delivered(task: Any, *, sent: float | None, eta: float | None = None, task_id: str = ONE) -> Iterator[None]:
    """A message of that age at a worker; None: it does not say when it was sent."""
    now = time.time()
    task.push_request(
        id=task_id,
        args=(1,),
        kwargs={},
        called_directly=False,
        is_eager=False,
        retries=0,
        headers={} if sent is None else {"effectonce_sent": now - sent},
        eta=None if eta is None else datetime.fromtimestamp(now - eta, UTC).isoformat(),
        delivery_info={},
    )
    try:
        yield
    finally:
        task.pop_request()


def test_a_message_of_long_ago_is_held_with_its_effect(work: Any, once: EffectOnce, notes: list[int]) -> None:
    with delivered(work, sent=2 * DAY), pytest.raises(Ignore, match="held as unknown"):
        work(1)
    (entry,) = once.ledger.find("w:1")
    assert (entry.state, notes) == (State.UNKNOWN, [])
    assert len(once.ledger.held(entry.digest)) == 1
    assert work.AsyncResult(ONE).state == "HELD"


def test_a_person_lets_it_run(work: Any, once: EffectOnce, notes: list[int]) -> None:
    with delivered(work, sent=2 * DAY), pytest.raises(Ignore):
        work(1)
    assert once.entries.rerun("w:1").sent == 1
    with delivered(work, sent=0):
        assert work(1) == 1
    assert notes == [1]


@pytest.mark.parametrize(
    ("sent", "eta"), [(DAY / 2, None), (2 * DAY, DAY / 2), (None, None), (None, DAY / 2), (-DAY, None)]
)
def test_a_message_that_was_due_since_then_runs(work: Any, notes: list[int], sent: float | None, eta: Any) -> None:
    """Its eta counts, not when it was sent; one that tells neither was sent by somebody who does not know us."""
    with delivered(work, sent=sent, eta=eta):
        assert work(1) == 1
    assert notes == [1]


def test_while_the_ledger_knows_of_it_that_decides(work: Any, once: EffectOnce, notes: list[int]) -> None:
    with delivered(work, sent=0):
        work(1)
    with delivered(work, sent=2 * DAY, task_id="another"):
        assert work(1) == 1
    assert notes == [1]
    assert [entry.state for entry in once.ledger.find("w:1")] == [State.COMPLETED]


def test_a_released_effect_runs_however_late_its_message_comes(app: Celery, once: EffectOnce, notes: list[int]) -> None:
    def body(x: int) -> int:
        notes.append(x)
        if len(notes) == 1:
            raise ValueError(x)
        return x

    work = app.task(name="w", once=Leased("w:{x}", keep=DAY))(body)
    with delivered(work, sent=0), pytest.raises(ValueError, match="1"):
        work(1)
    with delivered(work, sent=2 * DAY):
        assert work(1) == 1


@pytest.mark.parametrize("policy", [Exclusive("w"), Natural("w:{x}"), Leased("w:{x}", keep=None)])
def test_where_no_entry_is_ever_missed_it_runs(app: Celery, once: EffectOnce, notes: list[int], policy: Any) -> None:
    work = app.task(name="w", once=policy)(noting(notes))
    with delivered(work, sent=3000 * DAY):
        work(1)
    assert notes == [1]


def test_a_body_in_a_transaction_is_held_too(make_app: Callable[..., Celery], tmp_path: Any, notes: list[int]) -> None:
    app = make_app()
    once = EffectOnce(app, ledger=f"sqlite:///{tmp_path / 'late.sqlite'}")
    work = app.task(name="w", once=Transactional("w:{x}", keep=DAY))(noting(notes))
    with delivered(work, sent=2 * DAY), pytest.raises(Ignore):
        work(1)
    with delivered(work, sent=0, task_id="another"), pytest.raises(Ignore, match="held as unknown"):
        work(1)
    with delivered(work, sent=0, task_id="another"):
        assert [entry.state for entry in once.ledger.find("w:1")] == [State.UNKNOWN]
    assert notes == []
    once.ledger.close()


def test_every_message_says_when_it_was_sent(app: Celery, work: Any) -> None:
    plain = app.task(name="plain")(noting([]))
    sent: list[Any] = []
    sender = app.amqp.__dict__["send_task_message"]
    cell = next(c.cell_contents for c in sender.__closure__ if isinstance(c.cell_contents, list))
    cell[:] = [lambda _producer, _name, message, **_: sent.append(message.headers)]
    before = time.time()
    work.apply_async((1,), headers={"effectonce_sent": 1.0})
    plain.delay(1)
    assert before - 1 <= sent[0]["effectonce_sent"] <= time.time() + 1
    assert "effectonce_sent" not in sent[1]
