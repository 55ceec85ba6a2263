"""The stores of terms and ticks, held to one suite; one place for all rules: making one takes longer than a rule."""

from collections.abc import Iterator

import pytest

from effectonce.ports import ScheduleStore
from effectonce.stores.memory import MemoryLedger
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance import ScheduleConformance
from tests.services import Fleet


@pytest.fixture(scope="module")
def on_redis(fleet: Fleet) -> Iterator[ScheduleStore]:
    url = fleet.redis().fresh_url()
    ledger = RedisLedger.open(url)
    yield ledger.schedule
    ledger.close()
    fleet.redis().put_back(url)


@pytest.fixture(scope="module")
def on_postgresql(fleet: Fleet) -> Iterator[ScheduleStore]:
    url = fleet.postgresql().fresh_url()
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    yield ledger.schedule
    ledger.close()
    fleet.postgresql().put_back(url)


@pytest.fixture(scope="module")
def on_mariadb(fleet: Fleet) -> Iterator[ScheduleStore]:
    url = fleet.mariadb().fresh_url()
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    yield ledger.schedule
    ledger.close()
    fleet.mariadb().put_back(url)


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScheduleStore]:
    ledger = SqlLedger.open(f"sqlite:///{tmp_path_factory.mktemp('ledger') / 'beat.sqlite'}")
    yield ledger.schedule
    ledger.close()


class TestMemory(ScheduleConformance):
    @pytest.fixture
    def schedule(self) -> ScheduleStore:
        return MemoryLedger("beat").schedule


class TestRedis(ScheduleConformance):
    @pytest.fixture
    def schedule(self, on_redis: ScheduleStore) -> ScheduleStore:
        return on_redis


class TestPostgreSQL(ScheduleConformance):
    @pytest.fixture
    def schedule(self, on_postgresql: ScheduleStore) -> ScheduleStore:
        return on_postgresql


class TestMariaDB(ScheduleConformance):
    @pytest.fixture
    def schedule(self, on_mariadb: ScheduleStore) -> ScheduleStore:
        return on_mariadb


class TestSQLite(ScheduleConformance):
    @pytest.fixture
    def schedule(self, on_sqlite: ScheduleStore) -> ScheduleStore:
        return on_sqlite
