"""The book of RedBeat's scheduler: entries in Redis, which anybody may change at any time.

RedBeat tells of no change. Each look at its ``schedule`` gives the entries that it takes for due, and the next one.
So an entry is found when its score comes, kept on the agenda from then on, and read anew each time it is looked at. The
score is written to be the entry's next instant, so that RedBeat and the agenda agree.
"""

from collections.abc import Iterable
from typing import Any

from effectonce.app.beat.book import AGAIN, Book, Later
from effectonce.app.beat.entries import series_of
from effectonce.domain.series import SECOND, Instant, Series, datetime_of
from effectonce.domain.ticks import Missed, Planned, Tick


class RedBeatBook(Book):
    """Entries of RedBeat, read when they are looked at."""

    def __init__(self, inner: Any, *, missed: Missed) -> None:
        super().__init__(inner, missed=missed)
        inner.lock_key = None
        self._due: dict[str, Any] = {}
        self._is_first = True

    def changed(self) -> tuple[Iterable[str], Iterable[str]]:
        """What RedBeat takes for due, or to be next; all there is when the term begins."""
        found = self._all() if self._is_first else self.inner.schedule
        self._is_first = False
        now = self.inner.app.now().timestamp()
        self._due = {name: entry for name, entry in found.items() if entry.score <= now}
        new = [name for name in found if name in self._due or name not in self._seen]
        self._seen.update((name, (entry, entry.schedule)) for name, entry in found.items())
        return new, ()

    def plan(self, name: str, now: Instant) -> Planned | Later | None:
        """An entry as it stands in Redis now."""
        entry = self._read(name)
        if entry is None:
            self._seen.pop(name, None)
            return None
        self._seen[name] = (entry, entry.schedule)
        return self.planned(entry) if entry.enabled else Later(now + AGAIN)

    def find(self, name: str) -> Planned | None:
        """The same, whether it may run now or not."""
        entry = self._read(name)
        if entry is None:
            return None
        self._seen[name] = (entry, entry.schedule)
        return self.planned(entry)

    def series(self, entry: Any) -> Series | None:
        """The instants of its schedule: what RedBeat's entries add to `is_due` is looked at in `plan`."""
        return series_of(entry.schedule)

    def advance(self, tick: Tick) -> None:
        """Write the instant as the last run, so that the score is the next instant."""
        entry = self.entry(tick.name)
        self._due.pop(tick.name, None)
        self._note(tick.name, entry._next_instance(last_run_at=datetime_of(tick.instant)))  # noqa: SLF001 - listed

    def next_at(self, name: str, at: Instant | None) -> None:
        """Move the score of an entry that RedBeat takes for due and that is not."""
        if self._due.pop(name, None) is not None:
            entry, score = self.entry(name), -1 if at is None else at / SECOND
            self._client().zadd(self.inner.app.redbeat_conf.schedule_key, {entry.key: score}, xx=True)

    def _all(self) -> dict[str, Any]:
        keys = self._client().zrange(self.inner.app.redbeat_conf.schedule_key, 0, -1)
        found = (self._at(key) for key in keys)
        return {entry.name: entry for entry in found if entry is not None}

    def _read(self, name: str) -> Any:
        return self._at(self.inner.Entry.generate_key(self.inner.app, name))

    def _at(self, key: str) -> Any:
        try:
            return self.inner.Entry.from_key(key, app=self.inner.app)
        except KeyError:
            return None

    def _client(self) -> Any:
        from redbeat.schedulers import get_redis  # noqa: PLC0415 - only where RedBeat is in use

        return get_redis(self.inner.app)
