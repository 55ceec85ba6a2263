"""What a guarded call costs on PostgreSQL: statements and round trips as libpq saw them.

The same body in a transaction of its own costs ``begin``, itself, and ``commit``; all else is ours.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery, _state

from effectonce import EffectOnce, Leased, Transactional
from effectonce.runtime.plan import Plan
from tests.integration.sql.wire import tapped

INSERT = sa.text("insert into rows values (1)")


@pytest.fixture(scope="module")
def once(fleet: Any) -> Iterator[EffectOnce]:
    """Guarded tasks in a database with a table of rows; each was called once, so that all is warm."""
    server = fleet.postgresql()
    url = str(server.fresh_url())
    shared = set(_state._on_app_finalizers)
    app = Celery("costs", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=url, lease_seconds=0.4)
    once.ledger.create_schema()
    with _engine(once).begin() as connection:
        connection.execute(sa.text("create table rows (x int)"))
    _define(once)
    for task in app.tasks.values():
        if not task.name.startswith("celery."):
            task(0)
    yield once
    once.ledger.close()
    app.close()
    server.put_back(url)
    _state._on_app_finalizers.intersection_update(shared)


def _define(once: EffectOnce) -> None:
    app = once.app

    @app.task(name="quiet", once=Transactional("quiet:{x}"))
    def quiet(x: int) -> None:
        once.connection.execute(INSERT)

    @app.task(name="answers", once=Transactional("answers:{x}"))
    def answers(x: int) -> int:
        once.connection.execute(INSERT)
        return x

    @app.task(name="session", once=Transactional("session:{x}"))
    def session(x: int) -> None:
        once.session.execute(INSERT)

    @app.task(name="fails", once=Transactional("fails:{x}", remember=(KeyError,)))
    def fails(x: int) -> None:
        if x == 1:
            raise KeyError(x)
        if x == 2:
            raise ValueError(0)

    @app.task(name="leased", once=Leased("leased:{x}"))
    def leased(x: int) -> int:
        return x


def _engine(once: EffectOnce) -> sa.Engine:
    return once.ledger.source.engine  # type: ignore[attr-defined, no-any-return]


def _verbs(once: EffectOnce, name: str, x: int) -> list[str]:
    with tapped(_engine(once)) as wire:
        once.app.tasks[name](x)
    assert wire.round_trips == len(wire.statements)
    return wire.verbs


def test_an_effect_without_a_result_costs_one_statement_and_no_commit(once: EffectOnce) -> None:
    assert _verbs(once, "quiet", 1) == ["begin", "insert", "insert", "commit"]


def test_a_result_costs_one_statement_more(once: EffectOnce) -> None:
    assert _verbs(once, "answers", 1) == ["begin", "insert", "insert", "update", "commit"]


def test_the_session_of_a_body_costs_its_savepoint(once: EffectOnce) -> None:
    """That is what makes ``session.commit()`` in a body harmless."""
    assert _verbs(once, "session", 1) == ["begin", "insert", "savepoint", "insert", "release", "commit"]


def test_a_failure_costs_a_look_for_what_it_may_have_committed(once: EffectOnce) -> None:
    """A body can commit through the driver behind everybody's back; its entry would say that it is done."""
    looked = ["begin", "update", "commit"]
    with tapped(_engine(once)) as wire, pytest.raises(ValueError, match="0"):
        once.app.tasks["fails"](2)
    assert wire.verbs == ["begin", "insert", "rollback", *looked]
    with tapped(_engine(once)) as wire, pytest.raises(KeyError):
        once.app.tasks["fails"](1)
    assert wire.verbs == ["begin", "insert", "rollback", *looked, "begin", "insert", "update", "commit"]


@pytest.mark.parametrize("name", ["quiet", "answers"])
def test_a_duplicate_of_finished_work_costs_two_statements(once: EffectOnce, name: str) -> None:
    """Whether its first run left messages in the outbox is read with its entry."""
    once.app.tasks[name](2)
    assert _verbs(once, name, 2) == ["begin", "insert", "select", "rollback"]


def test_a_leased_effect_costs_a_claim_and_a_settlement(once: EffectOnce) -> None:
    assert _verbs(once, "leased", 1) == ["begin", "insert", "commit", "begin", "update", "commit"]
    assert _verbs(once, "leased", 1) == ["begin", "insert", "select", "commit"]


def test_a_busy_call_holds_no_connection_while_it_waits(once: EffectOnce, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks ever more slowly."""
    held, waited = [], []
    defaults = Plan.__init__.__kwdefaults__ or {}

    def pause(seconds: float) -> None:
        held.append(_engine(once).pool.checkedout())  # type: ignore[attr-defined]
        waited.append(seconds)
        defaults["sleep"](seconds)

    monkeypatch.setattr(Plan.__init__, "__kwdefaults__", {**defaults, "sleep": pause})
    task = once.app.tasks["leased"]
    guard = once.guard_of(task)
    assert guard is not None
    once.ledger.claim(guard.frame(task, task.request, (3,), {}, None).claim)
    with tapped(_engine(once)) as wire:
        assert task(3) == 3  # the lease of the first one has ended by then
    assert set(held) == {0}
    assert waited[:-1] == sorted(waited[:-1])
    assert wire.verbs.count("insert") <= len(held) + 1
