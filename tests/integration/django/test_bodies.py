"""What plain bodies do in Django's transaction: the entry commits with their rows, at the cost of one statement."""

import threading
from contextlib import suppress
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connections, transaction
from django.test.utils import CaptureQueriesContext

from effectonce import EffectOnce, Leased, LedgerUnavailable, Transactional
from effectonce.domain.claims import State
from tests.integration.django.books.models import Charge, Receipt


def charges(alias: str) -> list[int]:
    return list(Charge.objects.using(alias).order_by("order").values_list("order", flat=True))


def test_rows_of_the_orm_commit_with_the_entry(once: EffectOnce, alias: str) -> None:
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        ran.append(connections[alias].in_atomic_block)
        Charge.objects.using(alias).create(order=x)
        return "done"

    assert [work(1), work(1)] == ["done", "done"]
    assert (ran, charges(alias)) == ([True], [1])
    assert [entry.state for entry in once.ledger.entries(state=None, limit=9)] == [State.COMPLETED]


def test_a_failure_leaves_neither_rows_nor_an_entry(once: EffectOnce, alias: str) -> None:
    fail = [True]

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        if fail:
            raise ValueError(x)
        return "done"

    with pytest.raises(ValueError, match="1"):
        work(1)
    assert (charges(alias), once.ledger.entries(state=None, limit=9)) == ([], [])
    fail.clear()
    assert work(1) == "done"
    assert charges(alias) == [1]


def test_the_guard_costs_django_no_query_of_its_own(once: EffectOnce, alias: str) -> None:
    """What `assertNumQueries` counts is the body's: BEGIN and COMMIT aside, as under any atomic block."""

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)

    work(1)
    with CaptureQueriesContext(connections[alias]) as queries:
        work(2)
    assert [query["sql"].split()[0] for query in queries if query["sql"].split()[0] not in {"BEGIN", "COMMIT"}] == [
        "INSERT"
    ]


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_first_delivery_costs_one_statement_and_no_second_commit(once: EffectOnce, alias: str) -> None:
    """Rule 2, counted by the server: one more call than the bare block has, and as many commits."""

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)

    work(0)
    sent: list[str] = []
    with _listening(connections[alias], sent):
        work(1)
    mine = [sql for sql in sent if "effectonce_entries" in sql]
    assert [sql.split()[0] for sql in mine] == ["insert"]
    assert len(sent) == 2


class _listening:  # noqa: N801 - reads as a word
    """Notes each statement that goes over a psycopg connection, whoever sends it."""

    def __init__(self, connection: Any, sent: list[str]) -> None:
        self._driver, self._sent = connection.connection, sent

    def __enter__(self) -> None:
        plain = self._driver.cursor

        def cursor(*args: Any, **kwargs: Any) -> Any:
            found = plain(*args, **kwargs)
            execute = found.execute

            def noted(query: Any, *rest: Any, **options: Any) -> Any:
                self._sent.append(str(query))
                return execute(query, *rest, **options)

            found.execute = noted
            return found

        self._driver.cursor = cursor

    def __exit__(self, *_: object) -> None:
        del self._driver.cursor


def test_hooks_of_on_commit_run_once_after_our_commit(once: EffectOnce, alias: str) -> None:
    seen: list[Any] = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        transaction.on_commit(lambda: seen.append(_seen_by_another(alias)), using=alias)
        transaction.on_commit(lambda: seen.append(len(once.ledger.entries(state=None, limit=9))), using=alias)
        assert seen == []
        return "done"

    assert [work(1), work(1)] == ["done", "done"]
    assert seen == [1, 1]


def _seen_by_another(alias: str) -> int:
    """How many charges another connection sees."""
    found: list[int] = []

    def look() -> None:
        found.append(Charge.objects.using(alias).count())
        connections[alias].close()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def test_a_hook_that_fails_holds_up_neither_the_others_nor_the_task(
    once: EffectOnce, alias: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The work is committed: a failure now would be told of work that is done."""
    seen = []

    @once.app.task(name="work", once=Transactional("k:{x}"), autoretry_for=(Exception,))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        transaction.on_commit(lambda: 1 / 0, using=alias)
        transaction.on_commit(lambda: seen.append(x), using=alias)
        return "done"

    assert work(1) == "done"
    assert (seen, charges(alias)) == ([1], [1])
    assert "on_commit" in caplog.text


def test_a_failed_bodys_hooks_do_not_run(once: EffectOnce, alias: str) -> None:
    seen = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        transaction.on_commit(lambda: seen.append(x), using=alias)
        raise ValueError(x)

    with pytest.raises(ValueError, match="1"):
        work(1)
    assert seen == []
    assert connections[alias].run_on_commit == []


def test_a_guarded_call_inside_a_body_is_a_savepoint_of_it(once: EffectOnce, alias: str) -> None:
    seen, fail = [], [True]

    @once.app.task(name="inner", once=Transactional("inner:{x}"))
    def inner(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        transaction.on_commit(lambda: seen.append("inner"), using=alias)
        if fail:
            raise ValueError(x)
        return "inner"

    @once.app.task(name="outer", once=Transactional("outer:{x}"))
    def outer(x: int) -> str:
        Charge.objects.using(alias).create(order=100)
        transaction.on_commit(lambda: seen.append("outer"), using=alias)
        with suppress(ValueError):
            return str(inner(x))
        return "caught"

    assert outer(1) == "caught"
    assert (charges(alias), seen) == ([100], ["outer"])
    fail.clear()
    assert outer(2) == "inner"
    assert charges(alias) == [2, 100, 100]
    assert seen == ["outer", "outer", "inner"]


def test_a_direct_call_inside_a_transaction_is_part_of_it(once: EffectOnce, alias: str) -> None:
    """As in a view under ATOMIC_REQUESTS: what the caller rolls back has not taken place."""
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        ran.append(x)
        Charge.objects.using(alias).create(order=x)
        return "done"

    with suppress(KeyError), transaction.atomic(using=alias):
        assert [work(1), work(1)] == ["done", "done"]
        raise KeyError
    assert (ran, charges(alias), once.ledger.entries(state=None, limit=9)) == ([1], [], [])
    with transaction.atomic(using=alias):
        assert work(1) == "done"
    assert (ran, charges(alias)) == ([1, 1], [1])


def test_the_body_of_a_leased_task_is_in_no_transaction(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Leased("k:{x}"))
    def work(x: int) -> bool:
        Charge.objects.using(alias).create(order=x)
        return bool(connections[alias].in_atomic_block)

    assert [work(1), work(1)] == [False, False]
    assert charges(alias) == [1]


def test_a_retry_rolls_the_work_back_and_takes_effect_once(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", bind=True, once=Transactional("k:{x}"))
    def work(self: Any, x: int) -> int:
        Charge.objects.using(alias).create(order=x)
        if not self.request.retries:
            raise self.retry(countdown=0)
        return x

    assert work.apply((1,)).get() == 1
    assert charges(alias) == [1]


def test_a_remembered_failure_keeps_nothing_of_the_body(once: EffectOnce, alias: str) -> None:
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}", remember=(KeyError,)))
    def work(x: int) -> None:
        ran.append(x)
        Charge.objects.using(alias).create(order=x)
        raise KeyError(x)

    for _ in range(2):
        with pytest.raises(KeyError):
            work(1)
    assert (ran, charges(alias)) == ([1], [])


def test_a_conflict_runs_the_whole_body_again(once: EffectOnce, alias: str) -> None:
    """Rule 13, on the error as Django tells it."""
    turns: list[int] = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> int:
        turns.append(x)
        Charge.objects.using(alias).create(order=x)
        if len(turns) == 1:
            _raise_conflict(alias)
        return len(turns)

    assert work(1) == 2
    assert charges(alias) == [1]


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_conflict_at_the_commit_runs_the_whole_body_again(
    once: EffectOnce, alias: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under SERIALIZABLE the commit itself may be refused."""
    turns: list[int] = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> int:
        turns.append(x)
        Charge.objects.using(alias).create(order=x)
        return len(turns)

    plain = connections[alias]._commit
    monkeypatch.setattr(connections[alias], "_commit", lambda: plain() if len(turns) > 1 else _raise_conflict(alias))
    assert work(1) == 2
    assert charges(alias) == [1]


def _raise_conflict(alias: str) -> None:
    """The error that the loser of a conflict gets, as Django tells it."""
    driver: Any = connections[alias].Database
    made: dict[str, Any] = {
        "default": lambda: driver.errors.SerializationFailure("lost"),
        "maria": lambda: driver.OperationalError(1213, "Deadlock found"),
        "lite": lambda: driver.OperationalError("database is locked"),
    }
    cause = made[alias]()
    raise OperationalError(str(cause)) from cause


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_constraint_that_fails_at_the_commit_is_the_bodys_failure_as_django_tells_it(
    once: EffectOnce, alias: str
) -> None:
    """Foreign keys are deferred: PostgreSQL looks at the commit."""

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        Receipt.objects.using(alias).create(charge_id=12345, number=x)

    with pytest.raises(IntegrityError):
        work(1)
    assert (charges(alias), once.ledger.entries(state=None, limit=9)) == ([], [])
    assert not connections[alias].in_atomic_block


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
@pytest.mark.parametrize("then", ["a write", "nothing"])
def test_a_server_that_ends_the_connection_of_a_body_is_a_ledger_away_and_no_failure(
    once: EffectOnce, alias: str, then: str
) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"), autoretry_for=(Exception,))
    def work(x: int) -> None:
        Charge.objects.using(alias).create(order=x)
        _end_from_outside(alias)
        if then == "a write":
            Charge.objects.using(alias).create(order=2)

    with pytest.raises(LedgerUnavailable):
        work(1)
    assert charges(alias) == []


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_connection_that_was_cut_while_it_idled_is_replaced(once: EffectOnce, alias: str) -> None:
    """CONN_MAX_AGE keeps it; the server was restarted meanwhile."""

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        return "done"

    work(1)
    _end_from_outside(alias)
    assert work(2) == "done"
    assert charges(alias) == [1, 2]


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_connection_whose_driver_knows_that_it_is_closed_is_replaced(once: EffectOnce, alias: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        Charge.objects.using(alias).create(order=x)
        return "done"

    work(1)
    connections[alias].connection.close()
    assert work(2) == "done"
    assert charges(alias) == [1, 2]


def _end_from_outside(alias: str) -> None:
    """End the server's side of this thread's connection, by the alias that goes to the same database."""
    pid = connections[alias].connection.info.backend_pid
    with connections["twin"].cursor() as cursor:
        cursor.execute("select pg_terminate_backend(%s, 5000)", [pid])
    connections["twin"].close()


def test_sqlalchemy_in_a_body_writes_in_the_same_transaction(once: EffectOnce, alias: str) -> None:
    import sqlalchemy as sa  # noqa: PLC0415 - of this test alone

    statement = sa.text(f"insert into books_charge ({connections[alias].ops.quote_name('order')}) values (:x)")
    fail = [True]

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        once.session.execute(statement, {"x": x})
        once.connection.execute(statement, {"x": x + 1})
        once.session.commit()
        Charge.objects.using(alias).create(order=x + 2)
        if fail:
            raise ValueError(x)

    with pytest.raises(ValueError, match="1"):
        work(1)
    assert charges(alias) == []
    fail.clear()
    work(1)
    assert charges(alias) == [1, 2, 3]
