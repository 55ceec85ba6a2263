"""The ledger in SQL databases; one database for all rules, since making one takes longer than a rule."""

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from effectonce.ports import LedgerStore
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance import LedgerConformance
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


class TestSqlLedgerOnSQLite(LedgerConformance):
    @pytest.fixture
    def store(self, on_sqlite: SqlLedger) -> LedgerStore:
        return on_sqlite

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)
