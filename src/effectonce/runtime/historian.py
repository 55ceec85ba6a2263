"""The historian: writes down what was not ordinary, beside the path of the bodies.

It is told of events and only notes them; a thread writes a batch of them now and then. So a body never waits for its
history, a storm of duplicates becomes a few rows that say how often, and a process that is killed loses its last
second. What is ordinary is counted in memory, and costs a statement every ten seconds, not one each.

It is for people. When it cannot be written it is dropped, with one warning, and no effect is the worse for it.
"""

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from effectonce.errors import LedgerUnavailable, SchemaMissing
from effectonce.events import Event, Name
from effectonce.ports.history import Happened, HistoryStore

logger = logging.getLogger("effectonce")

ORDINARY: Final = frozenset(
    {Name.CLAIM_GRANTED, Name.EFFECT_COMPLETED, Name.EFFECT_RELEASED, Name.TICK_SENT, Name.OUTBOX_SENT}
)
"""Events that are counted, and leave no row."""

_UNTOLD: Final = frozenset(
    {Name.CLAIM_REFUSED, Name.DELIVERY_RENEWED}
    | {Name.EFFECT_SETTLED, Name.EFFECT_RERUN, Name.EFFECT_REOPENED, Name.EFFECT_REDACTED}
)
"""Events that say nothing which another does not, and what people do, which is written at once by whoever does it."""

MOST: Final = 1000
"""Rows that wait in a process; what comes above is counted only."""

PAUSE: Final = 0.5
"""Seconds in which events gather before they are written."""

COUNT_EVERY: Final = 10.0
"""Seconds after which counts alone are written."""


class Historian:
    """Notes events of this process; safe from any thread. *store* gives a ledger's history by its name, or None."""

    def __init__(
        self, store: Callable[[str], HistoryStore | None], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._clock = clock
        self._changed = threading.Condition()
        self._rows: OrderedDict[tuple[str, bytes, str, str, str, str], Happened] = OrderedDict()
        self._counts: dict[str, Counter[tuple[str, str]]] = {}
        self._counted_since = 0.0
        self._thread: threading.Thread | None = None
        self._stopped = self._is_broken = False

    def note(self, event: Event) -> None:
        """Note an event; never waits for the store."""
        if self._is_broken or event.name in _UNTOLD:
            return
        cause = str(event.facts.get("cause", ""))
        with self._changed:
            if not self._counts:
                self._counted_since = self._clock()
            self._counts.setdefault(event.place, Counter())[event.name.value, cause] += _number(event)
            is_row = bool(event.digest) and event.name not in ORDINARY
            if is_row:
                self._add(event, cause)
            self._start()
            if is_row:
                self._changed.notify()

    def _add(self, event: Event, cause: str) -> None:
        key = (event.place, event.digest, event.name.value, cause, event.task_id, str(event.facts.get("why", "")))
        known = self._rows.get(key)
        if known is not None:
            self._rows[key] = replace(known, times=known.times + 1)
        elif len(self._rows) < MOST:
            self._rows[key] = replace(happened_of(event), ago=self._clock())

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="effectonce-historian", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._stopped:
            with self._changed:
                if not self._rows and not self._stopped:
                    self._changed.wait(COUNT_EVERY)
                is_due = bool(self._rows) or self._clock() - self._counted_since >= COUNT_EVERY
                if self._rows and not self._stopped:
                    self._changed.wait_for(lambda: self._stopped, PAUSE)
            if is_due:
                self.write()

    def write(self) -> None:
        """Write what is noted, now; what cannot be written is dropped."""
        with self._changed:
            now = self._clock()
            rows: dict[str, list[Happened]] = {}
            for (place, *_), row in self._rows.items():
                rows.setdefault(place, []).append(replace(row, ago=now - row.ago))
            counts, self._counts, self._rows = self._counts, {}, OrderedDict()
        for place, counted in counts.items():
            self._write(place, rows.get(place, []), counted)

    def _write(self, place: str, rows: list[Happened], counts: Counter[tuple[str, str]]) -> None:
        try:
            store = self._store(place)
            if store is not None:
                store.record(rows, counts)
        except SchemaMissing:
            self._is_broken = True
            logger.warning("this ledger has no tables for the history; `schema create` or `schema upgrade` makes them")
        except LedgerUnavailable as error:
            logger.warning("the history of %d events could not be written: %s", sum(counts.values()), error.code)
        except Exception:
            logger.exception("the history of %d events could not be written", sum(counts.values()))

    def stop(self) -> None:
        """Write what is left, and end."""
        with self._changed:
            self._stopped = True
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)
        self.write()
        self._stopped = False


def happened_of(event: Event) -> Happened:
    """An event as the history keeps it: without the key's text."""
    facts: Mapping[str, object] = {name: value for name, value in event.facts.items() if name != "cause"}
    return Happened(
        digest=event.digest,
        name=event.name.value,
        cause=str(event.facts.get("cause", "")),
        task=event.task,
        task_id=event.task_id,
        attempt=event.attempt,
        fence=event.fence,
        facts=facts,
    )


def _number(event: Event) -> int:
    number = event.facts.get("messages", 1)
    return number if event.name is Name.OUTBOX_SENT and isinstance(number, int) else 1
