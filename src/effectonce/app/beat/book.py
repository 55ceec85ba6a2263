"""The schedule that beat wraps: its entries, and what is written back into it.

A book is made for a leader and closed with its term; a standby has none, so it neither opens a schedule file, nor
writes a row or a key of the schedule that it does not lead.

Which of its entries are due is not asked of the wrapped scheduler: its ``last_run_at`` is written for whoever reads
it (RedBeat finds entries by it), and decides nothing here. Whether an entry may run at all is asked:
disabled, before its start, expired, a one-off that has run.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from celery import beat
from celery.utils.time import maybe_make_aware

from effectonce.app import requests
from effectonce.app.beat.entries import Asked, series_of
from effectonce.domain.series import SECOND, Instant, Series, datetime_of, instant
from effectonce.domain.ticks import Missed, Planned, Tick

logger = logging.getLogger("effectonce")

OPTION: Final = "effectonce_missed"
"""Says in an entry's options (or their headers) what becomes of its missed ticks."""

AGAIN: Final = 5 * SECOND
"""When an entry is looked at again that may not run now."""


@dataclass(frozen=True, slots=True)
class Later:
    """The entry may not run now; look at it again at this instant."""

    at: Instant


class Book:
    """Entries of a scheduler that has all of them in its ``schedule``."""

    def __init__(self, inner: Any, *, missed: Missed) -> None:
        self.inner = inner
        self.missed = missed
        self._seen: dict[str, tuple[Any, Any]] = {}

    @property
    def max_interval(self) -> float:
        """Seconds after which the schedule is to be looked at again."""
        return float(self.inner.max_interval)

    def changed(self) -> tuple[Iterable[str], Iterable[str]]:
        """The names that are new or other than they were, and those that are gone."""
        entries = {name: (entry, entry.schedule) for name, entry in self.inner.schedule.items()}
        before, self._seen = self._seen, entries
        gone = before.keys() - entries.keys()
        return [name for name, entry in entries.items() if not _same(before.get(name), entry)], gone

    def plan(self, name: str, now: Instant) -> Planned | Later | None:
        """An entry as its ticks depend on it; None when it is gone."""
        seen = self._seen.get(name)
        return None if seen is None else self._planned(seen[0], now)

    def find(self, name: str) -> Planned | None:
        """The same, whether it may run now or not."""
        seen = self._seen.get(name)
        return None if seen is None else self.planned(seen[0])

    def entry(self, name: str) -> Any:
        """The scheduler's own entry."""
        return self._seen[name][0]

    def advance(self, tick: Tick) -> None:
        """Have the scheduler note that this tick was sent."""
        self._note(tick.name, self.inner.reserve(self.entry(tick.name)))

    def next_at(self, name: str, at: Instant | None) -> None:
        """Take notice of when an entry is due next."""

    def close(self) -> None:
        """Save and close the schedule, at the end of a term that still stands."""
        self.inner.close()

    def abandon(self) -> None:
        """Close the schedule without saving: another leads, and what we know is old."""
        vars(self.inner)["sync"] = lambda: None
        self.inner.close()

    def _planned(self, entry: Any, _now: Instant) -> Planned | Later:
        return self.planned(entry)

    def planned(self, entry: Any) -> Planned:
        """What an entry says of its ticks."""
        series = self.series(entry)
        return Planned(
            name=entry.name,
            series=Asked(entry.is_due) if series is None else series,
            missed=missed_of(entry, self.missed),
            start=start_of(entry),
            life=life_of(entry),
        )

    def series(self, entry: Any) -> Series | None:
        """The instants of an entry; None when its kind decides by itself what is due."""
        return series_of(entry.schedule) if type(entry).is_due is beat.ScheduleEntry.is_due else None

    def _note(self, name: str, entry: Any) -> None:
        if name in self._seen:
            self._seen[name] = (entry, entry.schedule)


def message_options(entry: Any, tick: Tick) -> dict[str, Any]:
    """The options that a tick is sent with: id and headers of its own, and an end counted from its instant."""
    options = dict(entry.options or {})
    options.pop(OPTION, None)
    headers = dict(options.get("headers") or {})
    headers.pop(OPTION, None)
    headers[requests.TICK] = tick.text
    headers[requests.ENTRY] = f"{tick.name}#{tick.entry.hex()[:8]}"
    life = life_of(entry)
    if life is not None:
        options["expires"] = datetime_of(tick.instant + life)
    return {**options, "headers": headers, "task_id": tick.task_id}


def start_of(entry: Any) -> Instant | None:
    """What an entry's own memory says of its last run, for an entry that the store does not know yet."""
    last = entry.last_run_at
    return None if last is None else instant(maybe_make_aware(last))


def life_of(entry: Any) -> Instant | None:
    """Microseconds that a message of this entry is of use, where its ``expires`` is a number of seconds."""
    expires = (entry.options or {}).get("expires")
    return int(expires * SECOND) if isinstance(expires, (int, float)) and expires > 0 else None


def missed_of(entry: Any, default: Missed) -> Missed:
    """What becomes of this entry's missed ticks: its own word before the setting."""
    options = entry.options or {}
    said = options.get(OPTION) or (options.get("headers") or {}).get(OPTION)
    if said is None:
        return default
    if said not in list(Missed):
        logger.error("the entry %s says %s=%r, which is none of %s", entry.name, OPTION, said, ", ".join(Missed))
        return default
    return Missed(said)


def _same(before: tuple[Any, Any] | None, now: tuple[Any, Any]) -> bool:
    return before is not None and before[0] is now[0] and before[1] is now[1]
