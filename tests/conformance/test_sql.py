"""The ledger in SQL databases; one database for all rules, since making one takes longer than a rule."""

import time
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from effectonce.ports import LedgerStore
from effectonce.ports.outbox import OutboxStore
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance import LedgerConformance, OutboxConformance
from tests.services import Fleet


def opened(url: str) -> Iterator[SqlLedger]:
    store = SqlLedger.open(url)
    store.create_schema()
    yield store
    store.close()


@pytest.fixture(scope="module")
def on_postgresql(fleet: Fleet) -> Iterator[SqlLedger]:
    url = fleet.postgresql().fresh_url()
    yield from opened(url)
    fleet.postgresql().put_back(url)


@pytest.fixture(scope="module")
def through_pgbouncer(fleet: Fleet) -> Iterator[SqlLedger]:
    url = fleet.pgbouncer().fresh_url()
    yield from opened(url)
    fleet.pgbouncer().put_back(url)


@pytest.fixture(scope="module")
def on_mariadb(fleet: Fleet) -> Iterator[SqlLedger]:
    url = fleet.mariadb().fresh_url()
    yield from opened(url)
    fleet.mariadb().put_back(url)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlLedger]:
    yield from opened(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'effects.sqlite'}")


def set_fence(store: LedgerStore, digest: bytes, fence: int) -> None:
    assert isinstance(store, SqlLedger)
    with store.source.engine.begin() as connection:
        found = connection.execute(
            text("update effectonce_entries set fence = :fence where digest = :digest"),
            {"fence": fence, "digest": digest},
        )
        assert found.rowcount == 1


class TestSqlLedgerOnPostgreSQL(LedgerConformance):
    @pytest.fixture
    def store(self, on_postgresql: SqlLedger) -> LedgerStore:
        return on_postgresql

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestSqlLedgerThroughPgBouncer(LedgerConformance):
    @pytest.fixture
    def store(self, through_pgbouncer: SqlLedger) -> LedgerStore:
        return through_pgbouncer

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestSqlLedgerOnMariaDB(LedgerConformance):
    @pytest.fixture
    def store(self, on_mariadb: SqlLedger) -> LedgerStore:
        return on_mariadb

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestSqlLedgerOnSQLite(LedgerConformance):
    @pytest.fixture
    def store(self, on_sqlite: SqlLedger) -> LedgerStore:
        return on_sqlite

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)

    def test_a_first_use_waits_for_no_writer_when_the_tables_are_there(self, on_sqlite: SqlLedger) -> None:
        """A body holds the file; a process that has just started reads, and is told at once that a key is busy."""
        with on_sqlite.source.engine.connect() as writer:
            writer.exec_driver_sql("begin immediate")
            other = SqlLedger.open(on_sqlite.source.engine.url)
            before = time.monotonic()
            assert other.read(b"nothing-of-these") is None
            assert time.monotonic() - before < 1
            writer.rollback()
        other.close()


class TestSqlOutboxOnPostgreSQL(OutboxConformance):
    @pytest.fixture
    def outbox(self, on_postgresql: SqlLedger) -> OutboxStore:
        return on_postgresql.outbox


class TestSqlOutboxOnSQLite(OutboxConformance):
    @pytest.fixture
    def outbox(self, on_sqlite: SqlLedger) -> OutboxStore:
        return on_sqlite.outbox


class TestSqlOutboxOnMariaDB(OutboxConformance):
    @pytest.fixture
    def outbox(self, on_mariadb: SqlLedger) -> OutboxStore:
        return on_mariadb.outbox
