"""The ledger in memory."""

from dataclasses import replace

import pytest

from effectonce.ports import LedgerStore
from effectonce.stores.memory import MemoryLedger
from effectonce.testing.conformance import LedgerConformance


class Clock:
    """Time that passes when a test says so, and a microsecond at each look."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.000_001
        return self.now


def set_fence(store: LedgerStore, digest: bytes, fence: int) -> None:
    assert isinstance(store, MemoryLedger)
    record = store._records[digest]
    record.entry = replace(record.entry, fence=fence)


class TestMemoryLedger(LedgerConformance):
    @pytest.fixture
    def store(self) -> LedgerStore:
        return MemoryLedger()

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


class TestMemoryLedgerOnAClockOfItsOwn(LedgerConformance):
    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    def store(self, clock: Clock) -> LedgerStore:
        self.clock_in_use = clock
        return MemoryLedger(clock=clock)

    def wait(self, seconds: float) -> None:
        self.clock_in_use.now += seconds

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)
