"""The ledger in Redis."""

from collections.abc import Iterator

import pytest

from effectonce.lab.reaper import Reaper
from effectonce.ports import LedgerStore
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance import LedgerConformance
from effectonce.testing.conformance.looking import Looking
from effectonce.testing.conformance.observing import Observing
from effectonce.testing.conformance.renewing import Renewing
from effectonce.testing.conformance.rescuing import Rescuing
from effectonce.testing.conformance.reserving import Reserving
from tests.services.many_redis import TwoNodes


def set_fence(store: LedgerStore, digest: bytes, fence: int) -> None:
    assert isinstance(store, RedisLedger)
    store._client.hset(store._keys.entry(digest), "fence", str(fence))


class TestRedisLedger(LedgerConformance):
    @pytest.fixture
    def store(self, redis_url: str) -> Iterator[LedgerStore]:
        store = RedisLedger.open(redis_url)
        yield store
        store.close()

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestRedisLedgerUnderAnotherPrefix(TestRedisLedger):
    """A prefix may hold anything, also what SCAN reads as a pattern and Redis as a hash tag."""

    @pytest.fixture
    def store(self, redis_url: str) -> Iterator[LedgerStore]:
        with_traps = RedisLedger.open(redis_url, prefix="shop[1]*?\\{a}:é")
        RedisLedger.open(redis_url, prefix="shop1x?a").ping()
        yield with_traps
        with_traps.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoNodes]:
    reaper = Reaper()
    cluster = TwoNodes(tmp_path_factory.mktemp("cluster"), reaper)
    yield cluster
    cluster.close()
    reaper.close()


class OnCluster:
    """Two nodes; a script that crossed slots would be refused."""

    @pytest.fixture
    def store(self, cluster: TwoNodes) -> Iterator[LedgerStore]:
        store = RedisLedger.open(cluster.url)
        yield store
        store.close()

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestRedisClusterLedger(OnCluster, Renewing, Rescuing, Looking, Reserving, Observing):
    """What is about many effects, and so about many slots."""


@pytest.mark.soak
class TestWholeRedisClusterLedger(OnCluster, LedgerConformance):
    """All of it."""
