"""Waiting for a store's clock."""

import time
from collections.abc import Callable
from typing import Final

PATIENCE: Final = 30.0
"""Seconds after which a store that does not get there has failed."""


class StoreClock:
    """The clock that a store counts leases by: the system's, unless a suite gives it another."""

    def wait(self, seconds: float) -> None:
        """Let *seconds* of the store's clock pass."""
        time.sleep(seconds)

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait for *happened*."""
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < deadline, "the store did not get there in time"
            self.wait(0.002)
