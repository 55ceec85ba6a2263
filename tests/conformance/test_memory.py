"""The ledger in memory."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from effectonce.ports import LedgerStore
from effectonce.stores.memory import MemoryLedger
from effectonce.testing.conformance import LedgerConformance
from effectonce.testing.conformance.scene import DONE, granted, new_claim


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
    def store(self) -> Iterator[LedgerStore]:
        """One whose threads take turns as often as they can, so that a missing lock shows."""
        usual = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        yield MemoryLedger()
        sys.setswitchinterval(usual)

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        set_fence(store, digest, fence)


def test_a_name_is_one_ledger_in_a_process() -> None:
    assert MemoryLedger.named("shop") is MemoryLedger.named("shop")
    assert MemoryLedger.named("shop") is not MemoryLedger.named("stock")
    assert MemoryLedger.named("shop").name == "memory://shop"


def test_an_entry_is_forgotten_after_its_time() -> None:
    clock = Clock()
    ledger = MemoryLedger(clock=clock)
    done, released, held = (granted(ledger, new_claim()) for _ in range(3))
    ledger.complete(done, replace(DONE, keep=10.0))
    ledger.release(released, retries=0, reset=True, keep=10.0)
    clock.now += 9.9
    assert len(ledger.entries(state=None, limit=10)) == 3
    clock.now += 0.2
    assert ledger.read(done.digest) is None
    assert [entry.digest for entry in ledger.entries(state=None, limit=10)] == [held.digest]


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
