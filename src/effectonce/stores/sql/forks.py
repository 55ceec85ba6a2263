"""Forking beside a ledger at work.

SQLite keeps the locks of a process in memory that a forked child inherits. A child that is born while another thread
holds a transaction believes for ever that the file is locked, and every claim of it is busy. So a fork waits for the
short statements of this ledger, and they wait for it (``tests/integration/sql/test_forks.py``). Transactions of
bodies do not take part: a pool that forks runs none in its main process, and a body may fork as it likes.

On every database the first use holds locks of SQLAlchemy, of the driver and of ours, which a child would inherit
locked. There a fork waits for the first use, and for whoever is just making a connection: libpq sets itself up at the
first connection of a process, and a child that was born in the middle of that waits for ever at its own.
"""

import os
import threading
import weakref
from collections import Counter
from contextlib import AbstractContextManager


class ForkGate:
    """Short transactions go through together with no fork; threads do not wait for each other."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._forking: int | None = None
        gate = weakref.ref(self)
        os.register_at_fork(
            before=lambda: _call(gate, "_before_fork"),
            after_in_parent=lambda: _call(gate, "_after_fork"),
            after_in_child=lambda: _call(gate, "_in_child"),
        )

    def passing(self) -> AbstractContextManager[None]:
        """A context in which this process does not fork from another thread."""
        return _Passing(self)

    def enter(self) -> int:
        """Wait for a fork in hand, then keep the next one waiting; what `leave` wants to know is returned."""
        me = threading.get_ident()
        with self._free:
            self._free.wait_for(lambda: self._forking in {None, me})
            self._inside[me] += 1
        return me

    def leave(self, who: int) -> None:
        """Let a fork go on; a context may end in another thread than it began in."""
        with self._free:
            self._inside[who] -= 1
            if self._inside[who] <= 0:  # the child of a fork begins to count anew
                del self._inside[who]
            self._free.notify_all()

    def _before_fork(self) -> None:
        me = threading.get_ident()
        with self._free:  # a thread that forks in the middle of its own transaction does not wait for itself
            self._free.wait_for(lambda: not set(self._inside) - {me} and self._forking is None, timeout=10)
            self._forking = me

    def _after_fork(self) -> None:
        with self._free:
            self._forking = None
            self._free.notify_all()

    def _in_child(self) -> None:
        self._free = threading.Condition()
        self._inside, self._forking = Counter(), None


class _Passing:
    def __init__(self, gate: ForkGate) -> None:
        self._gate = gate
        self._who = 0

    def __enter__(self) -> None:
        self._who = self._gate.enter()

    def __exit__(self, *_: object) -> None:
        self._gate.leave(self._who)


def _call(gate: "weakref.ref[ForkGate]", step: str) -> None:
    living = gate()
    if living is not None:
        getattr(living, step)()
