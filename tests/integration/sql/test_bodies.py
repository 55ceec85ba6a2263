"""What bodies do in their transaction, through guarded calls on each database."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, scoped_session, sessionmaker

from effectonce import (
    EffectBusy,
    EffectHeld,
    EffectOnce,
    LedgerUnavailable,
    LedgerUnsuitable,
    Transactional,
    TransactionEscaped,
)
from effectonce.domain.claims import State

_numbers = itertools.count()


class Base(DeclarativeBase):
    """Of the rows."""


class Row(Base):
    """A row as an object."""

    __tablename__ = "written"
    x: Mapped[int] = mapped_column(primary_key=True)


Run = Callable[..., Any]


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def once(request: pytest.FixtureRequest) -> Iterator[EffectOnce]:
    """An EffectOnce whose database has a table of rows."""
    url = request.getfixturevalue(f"{request.param}_url")
    app = Celery(f"bodies{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=url, lease_seconds=0.5)
    once.ledger.create_schema()
    with once.ledger.source.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.execute(sa.text("create table written (x int)"))
    yield once
    once.ledger.close()
    app.close()


def rows(once: EffectOnce) -> list[int]:
    with once.ledger.source.engine.connect() as connection:  # type: ignore[attr-defined]
        return list(connection.execute(sa.text("select x from written order by x")).scalars())


def insert(once: EffectOnce, x: int) -> None:
    once.session.execute(sa.text("insert into written values (:x)"), {"x": x})


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
    cause: Any = Exception(1213, "database is locked")
    cause.sqlstate = "40001"
    return OperationalError("select 1", {}, cause)


@pytest.mark.parametrize(
    "statement", ["COMMIT", "/* c */ COMMIT", "-- c\nrollback", "  end", "BEGIN", "/* a */ -- b\n COMMIT"]
)
def test_sql_that_ends_the_transaction_is_vetoed(once: EffectOnce, statement: str) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        insert(once, x)
        once.connection.exec_driver_sql(statement)

    with pytest.raises(TransactionEscaped):
        work(1)
    assert rows(once) == []
    assert once.ledger.entries(state=None, limit=10) == []


def test_a_nested_call_that_fails_and_is_caught_leaves_neither_work_nor_entry(once: EffectOnce) -> None:
    fail = [True]

    @once.app.task(name="inner", once=Transactional("inner:{x}"))
    def inner(x: int) -> str:
        insert(once, x)
        if fail:
            raise ValueError(x)
        return "inner"

    @once.app.task(name="outer", once=Transactional("outer:{x}"))
    def outer(x: int) -> str:
        insert(once, 100)
        try:
            inner(x)
        except ValueError:
            return "caught"
        return "not caught"

    assert outer(1) == "caught"
    assert rows(once) == [100]
    fail.clear()
    assert inner(1) == "inner"
    assert rows(once) == [1, 100]


def test_a_nested_body_that_ends_the_session_around_it_is_an_escape(once: EffectOnce) -> None:
    @once.app.task(name="inner", once=Transactional("inner:{x}"))
    def inner(x: int) -> None:
        insert(once, x)
        once.session.rollback()

    @once.app.task(name="outer", once=Transactional("outer:{x}"))
    def outer(x: int) -> None:
        insert(once, 100)
        inner(x)

    with pytest.raises(TransactionEscaped):
        outer(1)
    assert rows(once) == []


@pytest.mark.parametrize("once", ["postgresql"], indirect=True)
def test_a_swallowed_database_error_does_not_pass_for_success(once: EffectOnce) -> None:
    """A75: PostgreSQL answers COMMIT of a failed transaction with ROLLBACK, and no driver raises."""

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        insert(once, x)
        with suppress(SQLAlchemyError):
            once.connection.execute(sa.text("insert into nowhere values (1)"))

    with pytest.raises(TransactionEscaped, match="savepoint"):
        work(1)
    assert rows(once) == []


def test_a_body_that_may_escape_and_rolls_back_still_counts_once(once: EffectOnce) -> None:
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}", allow_escape=True))
    def work(x: int) -> str:
        ran.append(x)
        once.connection.rollback()
        return "done"

    assert [work(1), work(1)] == ["done", "done"]
    assert ran == [1]


@pytest.mark.parametrize("once", ["postgresql", "mariadb"], indirect=True)
def test_an_engine_that_commits_by_itself_is_refused(once: EffectOnce) -> None:
    engine = sa.create_engine(once.ledger.source.engine.url, isolation_level="AUTOCOMMIT")  # type: ignore[attr-defined]
    app = Celery(f"auto{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    other = EffectOnce(app, ledger=engine)

    @app.task(name="auto", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        insert(other, x)

    with pytest.raises(LedgerUnsuitable, match="AUTOCOMMIT"):
        work(1)
    assert rows(once) == []
    engine.dispose()


def test_a_direct_call_leaves_its_callers_session_as_it_was(once: EffectOnce) -> None:
    registry = scoped_session(sessionmaker(bind=once.ledger.source.engine))  # type: ignore[attr-defined]
    app = Celery(f"registry{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    other = EffectOnce(app, ledger=registry)

    @app.task(name="in-registry", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        registry.execute(sa.text("insert into written values (:x)"), {"x": x})

    callers = registry()
    callers.info["pending"] = True
    work(1)
    assert registry() is callers
    assert rows(once) == [1]
    assert other.ledger.name
    registry.remove()


def test_a_long_task_id_is_no_fault_of_the_ledger(once: EffectOnce) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> str:
        insert(once, x)
        return "done"

    assert work.apply((1,), task_id="i" * 400).get() == "done"
    assert rows(once) == [1]


def test_a_password_in_the_query_of_a_url_is_not_shown() -> None:
    from effectonce.stores.sql.ledger import SqlLedger  # noqa: PLC0415 - needs no database

    assert "hush" not in SqlLedger.open("postgresql+psycopg://u:hush@host/db?password=hush").name


@pytest.mark.parametrize("how", ["by the driver", "behind another statement"])
def test_a_body_that_committed_past_the_watch_and_failed_is_held_and_not_done(once: EffectOnce, how: str) -> None:
    """Half of its work is committed, and its entry with it: a later delivery may neither replay nor repeat it."""
    ran = []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        ran.append(x)
        once.connection.execute(sa.text("insert into written values (:x)"), {"x": x})
        driver: Any = once.connection.connection.driver_connection
        if how == "by the driver":
            driver.commit()
        else:
            driver.cursor().execute("select 1; commit" if hasattr(driver, "info") else "commit")
        raise ValueError(x)

    with pytest.raises(ValueError, match="1"):
        work(1)
    with pytest.raises(EffectHeld):
        work(1)
    assert ran == [1]
    assert [entry.state for entry in once.ledger.entries(state=None, limit=9)] == [State.UNKNOWN]


def test_a_body_that_failed_inside_its_transaction_leaves_no_entry(once: EffectOnce) -> None:
    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> None:
        insert(once, x)
        raise ValueError(x)

    for _ in range(2):
        with pytest.raises(ValueError, match="1"):
            work(1)
    assert once.ledger.entries(state=None, limit=9) == []


def end_session(once: EffectOnce) -> None:
    """Have the server end the connection of the body, and return when it has."""
    is_mariadb = once.connection.dialect.name == "mariadb"
    number = once.connection.scalar(sa.text(f"select {'connection_id' if is_mariadb else 'pg_backend_pid'}()"))
    with once.ledger.source.engine.connect() as other:  # type: ignore[attr-defined]
        if not is_mariadb:
            other.execute(sa.text("select pg_terminate_backend(:pid, 5000)"), {"pid": number})
            return
        other.exec_driver_sql(f"kill {number}")
        lives = sa.text("select count(*) from information_schema.processlist where id = :id")
        while other.scalar(lives, {"id": number}):
            pass


@pytest.mark.parametrize("once", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("then", ["flush", "statement", "nothing"])
def test_a_server_that_ends_the_connection_of_a_body_is_a_ledger_away_and_no_failure(
    once: EffectOnce, then: str
) -> None:
    """It says so itself (57P01) before the driver notices; what is pending meets it when the body is over."""

    @once.app.task(name="work", once=Transactional("k:{x}"), autoretry_for=(Exception,))
    def work(x: int) -> None:
        insert(once, x)
        end_session(once)
        if then == "flush":
            once.session.add(Row(x=2))
        if then == "statement":
            insert(once, 2)

    with pytest.raises(LedgerUnavailable):
        work(1)
    assert rows(once) == []


def test_a_ledger_that_cannot_serve_a_task_starts_no_retry(postgresql_url: str) -> None:
    retried = []
    app = Celery(f"bodies{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=sa.create_engine(postgresql_url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool))
    once.ledger.create_schema()

    @app.task(
        name="work",
        once=Transactional("k:{x}"),
        autoretry_for=(Exception,),
        default_retry_delay=0,
        on_retry=lambda *_: retried.append(1),
    )
    def work(x: int) -> int:
        return x

    assert isinstance(work.apply((1,)).result, LedgerUnsuitable)
    assert retried == []


def test_a_body_may_report_its_state_to_a_backend_in_the_ledgers_database(postgresql_url: str) -> None:
    """What Celery's own backend commits there is a message to whoever watches, no part of the work."""
    app = Celery("reports", broker="memory://", backend=f"db+{postgresql_url}", set_as_current=False)
    once = EffectOnce(app, ledger=postgresql_url)
    once.ledger.create_schema()

    @app.task(bind=True, name="work", once=Transactional("k:{x}"))
    def work(self: Any, x: int) -> str:
        self.update_state(task_id="a report", state="PROGRESS", meta={"x": x})
        once.connection.execute(sa.text("create table written (x int)"))
        return "done"

    assert work.apply((1,)).get() == "done"
    assert app.AsyncResult("a report").state == "PROGRESS"
    once.ledger.close()
    app.close()
