"""The ledger in Redis."""

from collections.abc import Iterator

import pytest

from effectonce.ports import LedgerStore
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance import LedgerConformance


class TestRedisLedger(LedgerConformance):
    @pytest.fixture
    def store(self, redis_url: str) -> Iterator[LedgerStore]:
        store = RedisLedger.open(redis_url)
        yield store
        store.close()

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        assert isinstance(store, RedisLedger)
        store._client.hset(store._keys.entry(digest), "fence", str(fence))


class TestRedisLedgerUnderAnotherPrefix(TestRedisLedger):
    """A prefix may hold anything, also what SCAN reads as a pattern and Redis as a hash tag."""

    @pytest.fixture
    def store(self, redis_url: str) -> Iterator[LedgerStore]:
        with_traps = RedisLedger.open(redis_url, prefix="shop[1]*?\\{a}:é")
        RedisLedger.open(redis_url, prefix="shop1x?a").ping()
        yield with_traps
        with_traps.close()
