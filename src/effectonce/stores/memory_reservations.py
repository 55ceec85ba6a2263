"""Reservations in the memory of one process."""

import threading
from collections.abc import Callable

from effectonce import crashpoints


class MemoryReservations:
    """The part of `ports.LedgerStore` that reserves names; *clock* gives epoch seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._now = clock
        self._reserving = threading.Lock()
        self._reserved: dict[bytes, tuple[str, float]] = {}

    def reserve(self, name: bytes, holder: str, seconds: float) -> str:
        """Reserve *name*, if nobody has it."""
        crashpoints.crash_point("reserve.before")
        with self._reserving:
            now = self._now()
            first, ends = self._reserved.get(name, (holder, now))
            if ends <= now:
                self._reserved[name] = first, _ = holder, now + seconds
        crashpoints.crash_point("reserve.after")
        return first

    def give_back(self, name: bytes, holder: str) -> bool:
        """End a reservation, if *holder* has it."""
        crashpoints.crash_point("give_back.before")
        with self._reserving:
            held = self._reserved.get(name, ("", 0.0))[0] == holder
            if held:
                del self._reserved[name]
        crashpoints.crash_point("give_back.after")
        return held

    def forget_reservations(self) -> int:
        """Forget those that have ended."""
        with self._reserving:
            now = self._now()
            over = [name for name, (_, ends) in self._reserved.items() if ends <= now]
            for name in over:
                del self._reserved[name]
        return len(over)
