"""What bodies do in their transaction, through guarded calls on both databases."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery, _state
from sqlalchemy.exc import OperationalError

from effectonce import EffectBusy, EffectOnce, Transactional

_numbers = itertools.count()

Run = Callable[..., Any]


@pytest.fixture(params=["sqlite", "postgresql"])
def once(request: pytest.FixtureRequest) -> Iterator[EffectOnce]:
    """An EffectOnce whose database has a table of rows."""
    url = request.getfixturevalue(f"{request.param}_url")
    shared = set(_state._on_app_finalizers)
    app = Celery(f"bodies{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=url, lease_seconds=0.5)
    once.ledger.create_schema()
    with once.ledger.source.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text("create table rows (x int)"))
    yield once
    once.ledger.close()
    app.close()
    _state._on_app_finalizers.intersection_update(shared)


def rows(once: EffectOnce) -> list[int]:
    with once.ledger.source.engine.connect() as connection:  # type: ignore[attr-defined]
        return list(connection.execute(sa.text("select x from rows order by x")).scalars())


def insert(once: EffectOnce, x: int) -> None:
    once.session.execute(sa.text("insert into rows values (:x)"), {"x": x})


def test_a_released_entry_is_taken_by_a_direct_call_at_once(once: EffectOnce) -> None:
    """An entry is left behind by a failure after a committed claim; a call that may not wait runs on it."""
    answers = []

    @once.app.task(name="work", once=Transactional("k:{x}", on_busy="raise"))
    def work(x: int) -> str:
        insert(once, x)
        return "done"

    guard = once.guard_of(once.app.tasks["work"])
    assert guard is not None
    frame = guard.frame(once.app.tasks["work"], once.app.tasks["work"].request, (1,), {}, None)
    granted = once.ledger.claim(frame.claim)
    assert once.ledger.release(granted, retries=0, reset=True, keep=60)  # type: ignore[arg-type]
    answers.append(work(1))
    assert answers == ["done"]
    assert rows(once) == [1]
    assert work(1) == "done"
    assert rows(once) == [1]


def test_a_turn_that_is_run_again_gets_its_arguments_as_they_came(once: EffectOnce) -> None:
    turns = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int, items: list[int]) -> int:
        turns.append(list(items))
        while items:
            insert(once, items.pop())
        if len(turns) == 1:
            raise _conflict(once)
        return len(turns)

    assert work.apply((1, [5, 6])).get() == 2
    assert turns == [[5, 6], [5, 6]]
    assert rows(once) == [5, 6]


def test_a_transactional_body_cannot_be_part_of_itself(once: EffectOnce) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> int:
        insert(once, x)
        return int(work(x))

    with pytest.raises(EffectBusy):
        work(1)
    assert rows(once) == []


def test_control_exceptions_are_not_remembered(once: EffectOnce) -> None:
    @once.app.task(name="work", bind=True, once=Transactional("k:{x}", remember=(Exception,)))
    def work(self: Any, x: int) -> int:
        insert(once, x)
        if not self.request.retries:
            raise self.retry(countdown=0)
        return x

    assert work.apply((1,)).get() == 1
    assert rows(once) == [1]


def test_a_remembered_failure_keeps_nothing_of_the_body(once: EffectOnce) -> None:
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}", remember=(KeyError,)))
    def work(x: int) -> None:
        ran.append(x)
        insert(once, x)
        raise KeyError(x)

    for _ in range(2):
        with pytest.raises(KeyError):
            work(1)
    assert (ran, rows(once)) == ([1], [])


def _conflict(once: EffectOnce) -> Exception:
    """An error that the database would give to the loser of a conflict."""
    cause: Any = Exception("database is locked")
    cause.sqlstate = "40001"
    return OperationalError("select 1", {}, cause)
