"""The pruner: takes away entries whose time is over, a small batch after the other.

A pass goes through a ledger in the order of the primary key; each batch is a short transaction, and after each the
pruner pauses three times as long as the batch took, so it never has more than a quarter of one connection's time. One
process prunes at
a time: it holds a claim of its own in the ledger, which ends by itself when that process dies. What is claimed, held or
has a message waiting is never taken away.
"""

import os
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final, Protocol

from effectonce.domain.claims import Claim, Granted, State
from effectonce.errors import SchemaMissing
from effectonce.events import Emit, Event, Name
from effectonce.ports import LedgerStore, Pruned, Renewal, Sleep, history_of

BATCH: Final = 500
"""Entries that one batch looks at. What it removes lies all over the table: a large one writes much at once."""

PAUSE: Final = 3.0
"""How long it pauses after a batch, in lengths of the batch."""

TERM: Final = 60.0
"""Seconds that a process leads without renewal; a batch takes far less."""

EVERY: Final = 600.0
"""Seconds between two passes, counted from the end of the last, whichever worker made it."""

HISTORY_ROWS: Final = 100_000
"""Rows of the history that are kept unless the settings say otherwise."""

MINUTES: Final = 3 * 24 * 60
"""Minutes of which counts are kept."""

KEY: Final = "effectonce:pruner"
_DIGEST: Final = blake2b(KEY.encode(), digest_size=16).digest()
_DEATHS: Final = 30_000

Progress = Callable[[int, int, float], None]
"""Told after each batch: entries looked at so far, entries removed, and which part of the ledger that was, 0 to 1."""


class Batch(Protocol):
    """One batch of a pass: what removes, or only counts, what is over among the next *limit* entries."""

    def __call__(self, *, limit: int, after: bytes) -> Pruned:
        """See `ports.LedgerStore.prune` and `ports.LedgerStore.over`."""
        ...


class Pruner:
    """Prunes one store."""

    def __init__(
        self, store: LedgerStore, *, sleep: Sleep = time.sleep, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._sleep = sleep
        self._clock = clock

    def prune(self, progress: Progress | None = None) -> int | None:
        """Make one pass now; answers how many entries were removed, None when another process is at it."""
        if self._store.forgets_by_itself:
            return 0
        granted = self._store.claim(self._claim())
        if not isinstance(granted, Granted):
            return None
        try:
            self._store.forget_sightings()
            return self._pass(self._store.prune, progress, goes_on=lambda: self._leads(granted))
        finally:
            self._store.release(granted, retries=0, reset=True, keep=None)

    def over(self, progress: Progress | None = None) -> int:
        """How many entries a pass would remove now; nothing is written, and nobody's pass is waited for."""
        return self._pass(self._store.over, progress, goes_on=lambda: True)

    def _pass(self, batch: Batch, progress: Progress | None, *, goes_on: Callable[[], bool]) -> int:
        looked = removed = 0
        after: bytes | None = b""
        while after is not None:
            began = self._clock()
            pruned = batch(limit=BATCH, after=after)
            looked, removed, after = looked + pruned.looked, removed + pruned.removed, pruned.after
            if progress is not None:
                progress(looked, removed, pruned.share)
            if not goes_on():
                return removed
            if after is not None:
                self._sleep(PAUSE * (self._clock() - began))
        return removed

    def _leads(self, granted: Granted) -> bool:
        return granted.attempt in self._store.renew([_renewal(granted)])

    def is_due(self, now: float) -> bool:
        """Whether the last pass ended long enough ago; *now* is epoch seconds, and decides nothing else."""
        entry = self._store.read(_DIGEST)
        if entry is None:
            return True
        is_led = entry.state is State.CLAIMED and entry.lease_left > 0
        return not is_led and now - entry.since > EVERY

    @staticmethod
    def _claim() -> Claim:
        return Claim(
            digest=_DIGEST,
            key=KEY,
            attempt=os.urandom(8),
            identity=_DIGEST,
            task_id="",
            fingerprint=b"",
            lease=TERM,
            max_takeovers=_DEATHS,
        )


class PruningLoop:
    """Prunes the stores of a worker when they are due."""

    def __init__(
        self, stores: Callable[[], Sequence[LedgerStore]], *, emit: Emit, history_rows: int = HISTORY_ROWS
    ) -> None:
        self._stores = stores
        self._emit = emit
        self._history_rows = history_rows

    def step(self) -> bool:
        """Look at each store once."""
        for store in self._stores():
            pruner = Pruner(store)
            if store.forgets_by_itself or not pruner.is_due(time.time()):
                continue
            removed = pruner.prune()
            trim_history(store, rows=self._history_rows)
            if removed:
                self._emit(Event(name=Name.ENTRIES_PRUNED, facts={"ledger": store.name, "removed": removed}))
        return False


def trim_history(store: LedgerStore, *, rows: int = HISTORY_ROWS) -> int:
    """Keep about the last *rows* of a store's history, and counts of the last days; answers how many rows went."""
    history = history_of(store)
    if history is None:
        return 0
    try:
        return history.trim(rows=rows, minutes=MINUTES)
    except SchemaMissing:
        return 0


def _renewal(granted: Granted) -> Renewal:
    return Renewal(digest=granted.digest, attempt=granted.attempt, fence=granted.fence, lease=TERM)
