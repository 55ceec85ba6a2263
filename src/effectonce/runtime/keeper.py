"""The keeper of leases: renews what this process holds, off the bodies' threads.

One thread a process, started with the first lease. A tick renews all that are due in one statement. Belief in
a lease counts from when its renewal was *asked* for. A lease that could not be renewed in time is dropped and not
renewed any more: its holder finds out at `is_trusted`, and the store refuses it by its fence.

After a crash of the process nobody renews, and its leases end by themselves.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from effectonce.domain.claims import Granted
from effectonce.domain.leases import Lease
from effectonce.errors import LedgerUnavailable
from effectonce.events import Emit, Event, Name
from effectonce.ports import LedgerStore, Renewal

logger = logging.getLogger("effectonce")


class Held:
    """One claim that this process holds; *lost* once it is known not to."""

    __slots__ = ("granted", "key", "lease", "lost")

    def __init__(self, granted: Granted, lease: Lease, key: str) -> None:
        self.granted = granted
        self.lease = lease
        self.key = key
        self.lost = False

    def is_trusted(self, now: float) -> bool:
        """Tell whether the holder may still act."""
        return not self.lost and self.lease.is_trusted(now)


class Keeper:
    """Renews the leases of one process at one store."""

    def __init__(
        self, store: Callable[[], LedgerStore], *, emit: Emit, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._emit = emit
        self._clock = clock
        self._held: dict[bytes, Held] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def holding(self, granted: Granted, *, lease: Lease, key: str) -> Iterator[Held]:
        """Renew *granted* until the context is left."""
        held = Held(granted, lease, key)
        with self._changed:
            self._held[granted.attempt] = held
            self._ensure_thread()
            self._changed.notify()
        try:
            yield held
        finally:
            with self._changed:
                self._held.pop(granted.attempt, None)

    def _ensure_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="effectonce-keeper", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._held:
                    self._changed.wait()
                pause = self._pause()
                if pause > 0:
                    self._changed.wait(pause)
                    continue
            try:
                self.renew()
            except Exception:
                logger.exception("renewal failed and goes on; leases that cannot be renewed end by themselves")
                time.sleep(0.05)

    def _pause(self) -> float:
        """Seconds until the first lease is due; polls a failing store four times in the time that is left."""
        now = self._clock()
        first = min(held.lease.trusted_until - held.lease.length * 2 / 3 for held in self._held.values())
        return first - now

    def renew(self) -> None:
        """Renew all that are due, in one round trip; give up those that could not be renewed in time."""
        asked = self._clock()
        with self._changed:
            due = [held for held in self._held.values() if held.lease.is_due(asked)]
        for held in [held for held in due if not held.is_trusted(asked)]:
            self._give_up(held)
            due.remove(held)
        if not due:
            return
        try:
            kept = self._store().renew([_renewal(held) for held in due])
        except LedgerUnavailable:
            with self._changed:
                self._changed.wait(max(min(held.lease.length for held in due) / 12, 0.02))
            return
        for held in due:
            if held.granted.attempt in kept:
                held.lease = held.lease.renewed(asked)
            else:
                self._give_up(held)

    def _give_up(self, held: Held) -> None:
        held.lost = True
        with self._changed:
            still = self._held.pop(held.granted.attempt, None)
        if still is not None:
            granted = held.granted
            attempt, fence, digest = granted.attempt.hex(), granted.fence, granted.digest
            place = self._store().name
            event = Event(name=Name.LEASE_LOST, key=held.key, attempt=attempt, fence=fence, digest=digest, place=place)
            self._emit(event)


def _renewal(held: Held) -> Renewal:
    granted = held.granted
    return Renewal(digest=granted.digest, attempt=granted.attempt, fence=granted.fence, lease=held.lease.length)
