"""The stores of terms and ticks, held to one suite; one place for all rules: making one takes longer than a rule."""

from collections.abc import Iterator

import pytest

from effectonce.ports import ScheduleStore
from effectonce.ports.outbox import OutboxStore
from effectonce.stores.memory import MemoryLedger
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance import ScheduleConformance, StoringConformance
from tests.services import Fleet


@pytest.fixture(scope="module")
def on_redis(fleet: Fleet) -> Iterator[ScheduleStore]:
    url = fleet.redis().fresh_url()
    ledger = RedisLedger.open(url)
    yield ledger.schedule
    ledger.close()
    fleet.redis().put_back(url)


@pytest.fixture(scope="module")
def on_postgresql(fleet: Fleet) -> Iterator[SqlLedger]:
    url = fleet.postgresql().fresh_url()
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    yield ledger
    ledger.close()
    fleet.postgresql().put_back(url)


@pytest.fixture(scope="module")
def on_mariadb(fleet: Fleet) -> Iterator[SqlLedger]:
    url = fleet.mariadb().fresh_url()
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    yield ledger
    ledger.close()
    fleet.mariadb().put_back(url)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlLedger]:
    ledger = SqlLedger.open(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'beat.sqlite'}")
    yield ledger
    ledger.close()


class TestMemory(ScheduleConformance):
    @pytest.fixture
    def schedule(self) -> ScheduleStore:
        return MemoryLedger("beat").schedule


class TestRedis(ScheduleConformance):
    @pytest.fixture
    def schedule(self, on_redis: ScheduleStore) -> ScheduleStore:
        return on_redis


class TestPostgreSQL(StoringConformance):
    @pytest.fixture
    def schedule(self, on_postgresql: SqlLedger) -> ScheduleStore:
        return on_postgresql.schedule

    @pytest.fixture
    def outbox(self, on_postgresql: SqlLedger) -> OutboxStore:
        return on_postgresql.outbox


class TestMariaDB(StoringConformance):
    @pytest.fixture
    def schedule(self, on_mariadb: SqlLedger) -> ScheduleStore:
        return on_mariadb.schedule

    @pytest.fixture
    def outbox(self, on_mariadb: SqlLedger) -> OutboxStore:
        return on_mariadb.outbox


class TestSQLite(StoringConformance):
    @pytest.fixture
    def schedule(self, on_sqlite: SqlLedger) -> ScheduleStore:
        return on_sqlite.schedule

    @pytest.fixture
    def outbox(self, on_sqlite: SqlLedger) -> OutboxStore:
        return on_sqlite.outbox
