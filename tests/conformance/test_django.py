"""The ledger in Django's databases, on connections of its own and inside a test case's transaction."""

from collections.abc import Iterator

import pytest
from django.db import connections

from effectonce.app.ledgers import open_ledger
from effectonce.ports import LedgerStore, ScheduleStore
from effectonce.ports.outbox import OutboxStore
from effectonce.stores.sql.hosted import HostedLedger
from effectonce.testing.conformance import LedgerConformance, OutboxConformance, StoringConformance
from tests.integration.django import project
from tests.services import Fleet


@pytest.fixture(scope="module")
def on_postgresql(fleet: Fleet) -> Iterator[LedgerStore]:
    url = fleet.postgresql().fresh_url()
    project.give_postgresql(url)
    store = open_ledger("django", schema=None, create_schema=None)
    yield store
    store.close()
    connections.close_all()
    fleet.postgresql().put_back(url)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedgerStore]:
    project.give_sqlite(tmp_path_factory.mktemp("django"))
    store = open_ledger("django://lite", schema=None, create_schema=None)
    yield store
    store.close()
    connections.close_all()


def set_fence(store: LedgerStore, digest: bytes, fence: int) -> None:
    assert isinstance(store, HostedLedger)
    with connections[store.name.rpartition("/")[2]].cursor() as cursor:
        cursor.execute("update effectonce_entries set fence = %s where digest = %s", [fence, digest])
        assert cursor.rowcount == 1


class TestDjangoLedgerOnPostgreSQL(LedgerConformance):
    @pytest.fixture
    def store(self, on_postgresql: LedgerStore) -> LedgerStore:
        return on_postgresql

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestDjangoLedgerOnSQLite(LedgerConformance):
    @pytest.fixture
    def store(self, on_sqlite: LedgerStore) -> LedgerStore:
        return on_sqlite

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestDjangoOutboxOnPostgreSQL(OutboxConformance):
    @pytest.fixture
    def outbox(self, on_postgresql: LedgerStore) -> OutboxStore:
        return outbox_of(on_postgresql)


class TestDjangoOutboxOnSQLite(OutboxConformance):
    @pytest.fixture
    def outbox(self, on_sqlite: LedgerStore) -> OutboxStore:
        return outbox_of(on_sqlite)


def outbox_of(store: LedgerStore) -> OutboxStore:
    assert isinstance(store, HostedLedger)
    with connections[store.name.rpartition("/")[2]].cursor() as cursor:
        cursor.execute("delete from effectonce_outbox")
    return store.outbox


class TestTermsAndTicksInDjangosPostgreSQL(StoringConformance):
    @pytest.fixture
    def schedule(self, on_postgresql: LedgerStore) -> ScheduleStore:
        assert isinstance(on_postgresql, HostedLedger)
        return on_postgresql.schedule

    @pytest.fixture
    def outbox(self, on_postgresql: LedgerStore) -> OutboxStore:
        assert isinstance(on_postgresql, HostedLedger)
        return on_postgresql.outbox


class TestTermsAndTicksInDjangosSQLite(StoringConformance):
    @pytest.fixture
    def schedule(self, on_sqlite: LedgerStore) -> ScheduleStore:
        assert isinstance(on_sqlite, HostedLedger)
        return on_sqlite.schedule

    @pytest.fixture
    def outbox(self, on_sqlite: LedgerStore) -> OutboxStore:
        assert isinstance(on_sqlite, HostedLedger)
        return on_sqlite.outbox
