"""Tables that are missing, old, in a schema of their own, or made by two at once."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.errors import LedgerUnavailable, SchemaMissing
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.tables import tables
from effectonce.testing.conformance.crowds import at_once
from effectonce.testing.conformance.scene import granted, new_claim
from tests.integration.sql.scene import NONE, carried_out

TABLES = set(tables(None).metadata.tables)

ASKED: dict[str, Callable[[SqlLedger], object]] = {
    "claim": lambda ledger: ledger.claim(new_claim()),
    "a body": lambda ledger: carried_out(ledger, new_claim(), lambda _: None, outcome=NONE),
    "read": lambda ledger: ledger.read(b"0" * 16),
    "ping": lambda ledger: ledger.ping(),
    "rescue": lambda ledger: ledger.rescue(1),
}
asked = pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)


@pytest.fixture
def bare(database: str) -> Iterator[SqlLedger]:
    """A ledger whose database has no tables, and which makes none by itself."""
    ledger = SqlLedger.open(database, create_schema=False)
    yield ledger
    ledger.close()


@asked
def test_a_ledger_without_tables_says_which_command_makes_them(
    bare: SqlLedger, ask: Callable[[SqlLedger], object]
) -> None:
    with pytest.raises(SchemaMissing, match="once schema create") as missing:
        ask(bare)
    assert "effectonce_meta" in missing.value.reason
    assert _tables(bare) == set()


def test_postgresql_gets_tables_only_when_it_is_asked_to(postgresql_url: str) -> None:
    ledger = SqlLedger.open(postgresql_url)
    with pytest.raises(SchemaMissing):
        ledger.claim(new_claim())
    assert _tables(ledger) == set()
    ledger.create_schema()
    granted(ledger, new_claim())
    assert _tables(ledger) == TABLES
    ledger.close()


def test_sqlite_gets_tables_at_the_first_use_and_a_users_engine_does_not(sqlite_url: str) -> None:
    given = SqlLedger.open(engine := sa.create_engine(sqlite_url))
    with pytest.raises(SchemaMissing):
        given.claim(new_claim())
    ledger = SqlLedger.open(sqlite_url)
    granted(ledger, new_claim())
    granted(given, new_claim())
    ledger.close()
    engine.dispose()


def test_a_ledger_is_found_when_its_tables_come_later(bare: SqlLedger) -> None:
    with pytest.raises(SchemaMissing):
        bare.ping()
    other = SqlLedger.open(bare.source.engine.url)
    other.create_schema()
    other.close()
    bare.ping()
    granted(bare, new_claim())


@asked
@pytest.mark.parametrize("version", [0, None], ids=["older", "none"])
def test_an_older_version_is_refused(bare: SqlLedger, ask: Callable[[SqlLedger], object], version: int | None) -> None:
    bare.create_schema()
    _execute(bare, "delete from effectonce_meta")
    if version is not None:
        _execute(bare, f"insert into effectonce_meta values ({version})")
    with pytest.raises(SchemaMissing, match=f"its version is {version}"):
        ask(bare)


def test_a_newer_version_is_used(bare: SqlLedger) -> None:
    """A release widens, and old code must run beside it."""
    bare.create_schema()
    _execute(bare, "update effectonce_meta set version = 2")
    _execute(bare, "alter table effectonce_entries add column later integer")
    granted(bare, new_claim())


@pytest.mark.parametrize(
    "fault",
    [
        "drop table effectonce_held",
        "drop table effectonce_entries",
        "alter table effectonce_entries rename column keep_us to something",
        "alter table effectonce_held rename column message to something",
    ],
)
def test_a_missing_table_or_column_is_a_missing_schema(bare: SqlLedger, fault: str) -> None:
    bare.create_schema()
    _execute(bare, fault)
    with pytest.raises(SchemaMissing):
        granted(bare, new_claim())


def test_a_table_that_is_lost_while_the_ledger_is_used_is_not_made_anew(sqlite_url: str) -> None:
    """All entries would be gone without a word, and every effect would take place again."""
    ledger = SqlLedger.open(sqlite_url)
    granted(ledger, new_claim())
    _execute(ledger, "drop table effectonce_entries")
    with pytest.raises(SchemaMissing):
        ledger.claim(new_claim())
    assert _tables(ledger) == TABLES - {"effectonce_entries"}
    ledger.close()


def test_tables_lie_in_the_schema_that_is_asked_for(postgresql_url: str) -> None:
    ledger = SqlLedger.open(postgresql_url, schema="Shop one")
    ledger.create_schema()
    ledger.create_schema()
    claim = new_claim()
    granted(ledger, claim)
    assert set(sa.inspect(ledger.source.engine).get_table_names(schema="Shop one")) == TABLES
    assert _tables(ledger) == set()
    elsewhere = SqlLedger.open(postgresql_url)
    with pytest.raises(SchemaMissing):
        elsewhere.read(claim.digest)
    ledger.close()
    elsewhere.close()


def test_one_who_may_not_make_schemas_may_use_the_one_that_is_there(postgresql_url: str) -> None:
    admin = sa.create_engine(postgresql_url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.exec_driver_sql("create role plain login password 'plain'")
        connection.exec_driver_sql("create schema shop authorization plain")
    ledger = SqlLedger.open(sa.make_url(postgresql_url).set(username="plain", password="plain"), schema="shop")
    ledger.create_schema()
    granted(ledger, new_claim())
    denied = SqlLedger.open(ledger.source.engine.url, schema="other")
    with pytest.raises(LedgerUnavailable, match="InsufficientPrivilege"):
        denied.create_schema()
    ledger.close()
    denied.close()
    with admin.connect() as connection:
        connection.exec_driver_sql("drop schema shop cascade")
        connection.exec_driver_sql("drop role plain")
    admin.dispose()


def test_making_tables_leaves_a_users_sqlite_file_as_it_is(sqlite_url: str) -> None:
    engine = sa.create_engine(sqlite_url)
    SqlLedger.open(engine).create_schema()
    with engine.connect() as connection:
        assert connection.exec_driver_sql("pragma journal_mode").scalar() == "delete"
    engine.dispose()


def test_many_threads_make_the_tables_at_once(database: str) -> None:
    ledgers = [SqlLedger.open(database, create_schema=True) for _ in range(8)]
    at_once([partial(ledger.read, new_claim().digest) for ledger in ledgers])
    assert _tables(ledgers[0]) == TABLES
    for ledger in ledgers:
        granted(ledger, new_claim())
        ledger.close()


def test_threads_of_one_ledger_wait_for_its_first_use(database: str) -> None:
    for _ in range(3):
        ledger = SqlLedger.open(database, create_schema=True)
        assert at_once([partial(ledger.read, b"0" * 16)] * 8) == [None] * 8
        ledger.close()


def test_many_processes_make_the_tables_at_once(database: str) -> None:
    """Forked by the system, not by `multiprocessing`, whose hooks close what other tests left open, and may wait."""
    start = multiprocessing.get_context("fork").Barrier(6)
    reader, writer = os.pipe()
    children = [_forked(database, start, writer) for _ in range(6)]
    os.close(writer)
    for child in children:
        os.waitpid(child, 0)
    with os.fdopen(reader) as answers:
        assert answers.read().splitlines() == ["granted"] * 6


def _forked(url: str, start: Any, writer: int) -> int:
    child = os.fork()
    if child:
        return child
    try:
        signal.alarm(60)
        os.write(writer, f"{_made(url, start)}\n".encode())
    finally:
        os._exit(0)


def _made(url: str, start: Any) -> str:
    ledger = SqlLedger.open(url, create_schema=True)
    start.wait(60)
    try:
        ledger.ping()
        return type(ledger.claim(new_claim())).__name__.lower()
    except Exception as error:  # noqa: BLE001 - the test shows it
        return repr(error)


def _tables(ledger: SqlLedger) -> set[str]:
    return set(sa.inspect(ledger.source.engine).get_table_names())


def _execute(ledger: SqlLedger, statement: str) -> None:
    with ledger.source.engine.begin() as connection:
        connection.exec_driver_sql(statement)
