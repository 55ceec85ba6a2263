"""The elector: wins a term, renews it, and knows to the moment when to stop believing in it.

A thread asks the store. Whoever acts under the term asks `Elector.term`, which looks at the clock and nothing else: a
process that was stopped, or whose store does not answer, finds that it does not lead any more before its lease has
ended at the store. A renewal is due when a third of the lease has gone, so two may fail. A standby asks six times a
lease, so that the next leader is found within a lease of the last one's end.

After a crash nobody renews, and the term ends by itself. A leader that goes in good order resigns.
"""

import logging
import os
import threading
import time
from collections.abc import Callable

from effectonce.domain.leases import Lease
from effectonce.domain.terms import Term
from effectonce.errors import LedgerUnavailable
from effectonce.events import Emit, Event, Name
from effectonce.ports import LeaseStore

logger = logging.getLogger("effectonce")

_STANDBY = 6
"""How often a lease a standby asks."""


def uptime() -> float:
    """Seconds of a clock that never goes back, and goes on while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Elector:
    """Keeps one process in the race for the term *name*; *length* is that of the lease, in seconds."""

    def __init__(
        self,
        store: Callable[[], LeaseStore],
        *,
        name: str,
        who: str,
        length: float,
        emit: Emit,
        clock: Callable[[], float] = uptime,
    ) -> None:
        self._store = store
        self._name = name
        self._who = who
        self._length = length
        self._emit = emit
        self._clock = clock
        self._holder = os.urandom(16)
        self._held: tuple[Term, Lease] | None = None
        self._pause_until = 0.0
        # Reentrant: a signal may ask for the resignation while this same thread is inside.
        self._changing = threading.RLock()
        self._asking = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def term(self) -> Term | None:
        """The term that this process may act under at this moment."""
        held = self._held
        if held is None:
            return None
        if held[1].is_trusted(self._clock()):
            return held[0]
        self._lose(held[0], why="not renewed in time")
        return None

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="effectonce-elector", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Leave the race, and resign."""
        self._stopped.set()
        self.resign(why="stopped")

    def resign(self, *, why: str, pause: float = 0.0) -> None:
        """Give the term up, so that another may lead at once; do not ask for one in the next *pause* seconds."""
        self._pause_until = self._clock() + pause
        held = self._held
        if held is None or not self._lose(held[0], why=why):
            return
        try:
            self._store().resign(held[0])
        except LedgerUnavailable as error:
            logger.warning("a term could not be given back, and ends by itself: %s", error)

    def look(self) -> float:
        """Ask the store for what is due now; answers the seconds until the next asking."""
        with self._asking:
            held = self._held
            try:
                if held is None:
                    return self._try_to_win()
                return self._renew(*held)
            except LedgerUnavailable as error:
                logger.debug("the store of terms could not be asked: %s", error)
                return self._length / 12

    def _run(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            try:
                pause = self.look()
            except Exception:
                logger.exception("the elector failed; without a renewal the term ends by itself")
                pause = self._length / _STANDBY
            _ = self.term

    def _try_to_win(self) -> float:
        asked = self._clock()
        if asked < self._pause_until:
            return self._pause_until - asked
        term = self._store().win(self._name, holder=self._holder, who=self._who, length=self._length)
        if term is None:
            return self._length / _STANDBY
        lease = Lease.asked(asked, length=self._length)
        with self._changing:
            if self._stopped.is_set():
                self._store().resign(term)
                return self._length
            self._held = (term, lease)
        self._emit(Event(name=Name.TERM_WON, fence=term.fence, facts={"term": term.name, "who": self._who}))
        return self._until_due(lease)

    def _renew(self, term: Term, lease: Lease) -> float:
        asked = self._clock()
        if not lease.is_trusted(asked):
            self._lose(term, why="not renewed in time")
            return 0.0
        if not lease.is_due(asked):
            return self._until_due(lease)
        if not self._store().renew_term(term, length=self._length):
            self._lose(term, why="another leads, or the lease ended")
            return self._length / _STANDBY
        with self._changing:
            if self._held is not None and self._held[0] is term:
                lease = lease.renewed(asked)
                self._held = (term, lease)
        return self._until_due(lease)

    def _until_due(self, lease: Lease) -> float:
        return max(lease.trusted_until - lease.length * 2 / 3 - self._clock(), 0.0)

    def _lose(self, term: Term, *, why: str) -> bool:
        """Stop believing, once, and with another holder's name from now on: what the old one did may still arrive."""
        with self._changing:
            if self._held is None or self._held[0] is not term:
                return False
            self._held = None
            self._holder = os.urandom(16)
        self._emit(Event(name=Name.TERM_LOST, fence=term.fence, facts={"term": term.name, "why": why}))
        return True
