"""A ledger in the memory of one process: for tests, and for trying things out.

It asks `domain.claims.admit` itself, under one lock, so it is also the plainest account of what a ledger does. What
it does not do: live longer than its process, or be seen by another one. A prefork pool has many processes, each
with its own empty copy, and then nothing is guarded; use it with the solo and threads pools only.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State, admit
from effectonce.domain.following import Following
from effectonce.domain.steps import End, Step, waits_for_a_person
from effectonce.ports import Pruned, Renewal
from effectonce.stores.memory_records import (
    ENDED,
    HELD,
    OPEN,
    Record,
    claimed,
    ended,
    is_abandoned,
    is_begun_by,
    is_over,
    keep_once,
    moved,
    over_at,
    taken,
    told,
)
from effectonce.stores.memory_reservations import MemoryReservations
from effectonce.stores.memory_schedule import MemorySchedule
from effectonce.stores.memory_sightings import MemorySightings


class MemoryLedger(MemoryReservations, MemorySightings):
    """A `ports.LedgerStore` of this process; *clock* gives epoch seconds and must not go back."""

    _named: ClassVar[dict[str, "MemoryLedger"]] = {}
    _naming: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, name: str = "", *, clock: Callable[[], float] | None = None) -> None:
        self._name = name
        self._clock = clock or _steady_clock()
        MemoryReservations.__init__(self, self._clock)
        MemorySightings.__init__(self, self._clock)
        self._lock = threading.Lock()
        self._records: dict[bytes, Record] = {}
        self._schedule = MemorySchedule(self.name, self._clock)

    @classmethod
    def named(cls, name: str) -> "MemoryLedger":
        """The ledger ``memory://name``: the same one for all that ask in this process."""
        with cls._naming:
            return cls._named.setdefault(name, cls(name))

    @property
    def name(self) -> str:
        """Its URL."""
        return f"memory://{self._name}"

    @property
    def schedule(self) -> MemorySchedule:
        """Terms and ticks, in the same memory."""
        return self._schedule

    def claim(self, claim: Claim) -> Granted | Refused:
        """Grant as `admit` says."""
        crashpoints.crash_point("claim.before")
        with self._lock:
            now = self._clock()
            record = self._record(claim.digest, now)
            answer = admit(told(record, now) if record else None, claim, int(now * 1_000_000))
            if isinstance(answer, Granted) and not (record and record.holds(claim.attempt, answer.fence)):
                self._records[claim.digest] = claimed(claim, answer, now, record.steps if record else {})
        crashpoints.crash_point("claim.after")
        if isinstance(answer, Granted) and answer.takeover:
            crashpoints.crash_point("takeover.after")
        return answer

    def complete(self, granted: Granted, outcome: Outcome) -> bool:
        """End the claim for good, by fence and attempt."""
        crashpoints.crash_point("settle.before")
        with self._lock:
            now = self._clock()
            record = self._held_by(granted, now)
            if record is not None and record.entry.state is State.CLAIMED:
                record.entry = ended(record.entry, outcome, now)
                record.forget_at = over_at(now, outcome.keep)
            done = record is not None and record.entry.state in ENDED
        crashpoints.crash_point("settle.after")
        return done

    def release(self, granted: Granted, *, retries: int, reset: bool, keep: float | None) -> bool:
        """Let the key go; the tombstone keeps fence, attempt, attempts and, without *reset*, deaths."""
        crashpoints.crash_point("release.before")
        with self._lock:
            now = self._clock()
            record = self._held_by(granted, now)
            free = record is not None and record.entry.state in OPEN
            if record is not None and free:
                deaths = 0 if reset else record.entry.deaths
                record.entry = replace(moved(record.entry, State.RELEASED, now), deaths=deaths, retries=retries)
                record.forget_at = over_at(now, keep)
        crashpoints.crash_point("release.after")
        return free

    def renew(self, held: Sequence[Renewal]) -> frozenset[bytes]:
        """Renew all that hold and have not ended."""
        crashpoints.crash_point("renew.before")
        with self._lock:
            now = self._clock()
            kept = frozenset(renewal.attempt for renewal in held if self._renewed(renewal, now))
        crashpoints.crash_point("renew.after")
        return kept

    def follow(self, entry: Entry, identity: bytes) -> Following:
        """Register a follower, if the holder still holds."""
        crashpoints.crash_point("follow.before")
        with self._lock:
            record = self._record(entry.digest, self._clock())
            if (
                record is None
                or not record.holds(entry.attempt, entry.fence)
                or record.entry.state is not State.CLAIMED
            ):
                answer = Following.MOVED
            elif record.follower in {None, identity}:
                record.follower, answer = identity, Following.NEXT
            else:
                answer = Following.ANOTHER
        crashpoints.crash_point("follow.after")
        return answer

    def poison(self, entry: Entry, message: bytes) -> bool:
        """Set the entry aside, if nothing has moved since it was read."""
        with self._lock:
            now = self._clock()
            record = self._record(entry.digest, now)
            if record is None or not record.holds(entry.attempt, entry.fence):
                return False
            unmoved = record.entry.state is entry.state and entry.state in OPEN
            if not unmoved and record.entry.state is not State.POISONED:
                return False
            record.entry = moved(record.entry, State.POISONED, now)
            record.forget_at = None
            keep_once(record, message)
            return True

    def hold(self, digest: bytes, message: bytes) -> None:
        """Keep one more message with a held entry, once."""
        with self._lock:
            record = self._record(digest, self._clock())
            if record is not None and record.entry.state in HELD:
                keep_once(record, message)

    def held(self, digest: bytes) -> Sequence[bytes]:
        """Give the messages kept with an entry."""
        with self._lock:
            record = self._record(digest, self._clock())
            return tuple(record.messages) if record else ()

    def unhold(self, digest: bytes, message: bytes) -> None:
        """Forget one message kept with an entry."""
        with self._lock:
            record = self._record(digest, self._clock())
            if record is not None and message in record.messages:
                record.messages.remove(message)

    def settle_held(self, entry: Entry, outcome: Outcome, *, by: bytes) -> bool:
        """End a held entry as a person says."""
        with self._lock:
            now = self._clock()
            record = self._unmoved(entry, HELD, now)
            if record is not None:
                record.entry = taken(ended(record.entry, outcome, now), by, now)
                record.forget_at = over_at(now, outcome.keep)
            return record is not None

    def free(self, entry: Entry, *, by: bytes, keep: float | None) -> bool:
        """Let an entry run again that is held or finished."""
        with self._lock:
            now = self._clock()
            record = self._unmoved(entry, HELD | ENDED, now)
            if record is not None:
                stay = entry.state in HELD
                record.steps = {name: step for name, step in record.steps.items() if stay and step.ended is not None}
                fresh = ended(record.entry, Outcome(state=State.RELEASED, kept=False), now)
                record.entry = replace(taken(fresh, by, now), deaths=0, retries=0)
                record.forget_at = over_at(now, keep)
            return record is not None

    def redact(self, entry: Entry) -> bool:
        """Take what is personal away from a finished entry."""
        with self._lock:
            record = self._unmoved(entry, ENDED, self._clock())
            if record is not None:
                record.steps = {}
                record.entry = replace(record.entry, key="", fingerprint=b"", result=None, result_kept=False)
            return record is not None

    forgets_by_itself = True

    def prune(self, *, limit: int, after: bytes) -> Pruned:
        """Return: what is over is not there any more."""
        del limit, after
        return Pruned(looked=0, removed=0, after=None)

    over = prune

    def mark_continued(self, digest: bytes, attempt: bytes) -> None:
        """Note that the continuation went out."""
        crashpoints.crash_point("mark.before")
        with self._lock:
            record = self._record(digest, self._clock())
            if record is not None and record.entry.attempt == attempt and record.entry.state in ENDED:
                record.entry = replace(record.entry, continued=True)
        crashpoints.crash_point("mark.after")

    def mark_unknown(self, digest: bytes, attempt: bytes) -> None:
        """Hold this attempt's entry for a person."""
        crashpoints.crash_point("mark.before")
        with self._lock:
            now = self._clock()
            record = self._record(digest, now)
            if record is not None and record.entry.attempt == attempt:
                record.entry = moved(record.entry, State.UNKNOWN, now)
                record.forget_at = None
        crashpoints.crash_point("mark.after")

    def begin_step(self, granted: Granted, name: str, *, holds: bool) -> bool:
        """Record a start, by fence and attempt."""
        with self._lock:
            now = self._clock()
            record = self._acting(granted, now)
            if record is not None and not is_begun_by(record.steps.get(name), granted):
                record.steps[name] = Step(
                    name=name, attempt=granted.attempt, fence=granted.fence, began=now, holds=holds
                )
        return record is not None

    def end_step(self, granted: Granted, name: str, end: End) -> bool:
        """Record an end, by fence and attempt."""
        with self._lock:
            now = self._clock()
            record = self._acting(granted, now)
            step = record.steps.get(name) if record is not None else None
            if record is not None and step is not None and step.ended is None:
                record.steps[name] = replace(step, ended=now, result=end.result, kept=end.kept, skipped=end.skipped)
        return step is not None

    def cancel_step(self, granted: Granted, name: str) -> bool:
        """Take a start back, by fence and attempt."""
        with self._lock:
            record = self._acting(granted, self._clock())
            if record is not None:
                record.steps.pop(name, None)
            return record is not None

    def steps(self, digest: bytes) -> Sequence[Step]:
        """Give the steps of an effect."""
        with self._lock:
            record = self._record(digest, self._clock())
            return sorted(record.steps.values(), key=lambda step: step.began) if record else ()

    def read(self, digest: bytes) -> Entry | None:
        """Give the entry as it stands."""
        with self._lock:
            now = self._clock()
            record = self._record(digest, now)
            return told(record, now) if record else None

    def find(self, key: str) -> Sequence[Entry]:
        """Entries with this key, or this hex digest."""
        return [entry for entry in self._all() if key in {entry.key, entry.digest.hex()}]

    def entries(self, *, state: State | None, limit: int, after: bytes | None = None) -> Sequence[Entry]:
        """Up to *limit* entries by digest."""
        wanted = [entry for entry in self._all() if state in {None, entry.state}]
        return [entry for entry in wanted if after is None or entry.digest > after][: max(limit, 0)]

    def counts(self) -> Mapping[State, int]:
        """How many entries there are in each state."""
        return dict.fromkeys(State, 0) | Counter(entry.state for entry in self._all())

    def rescue(self, limit: int) -> Sequence[Entry]:
        """Release claims whose lease ended more than one lease ago, and count a death for each."""
        crashpoints.crash_point("rescue.before")
        with self._lock:
            now = self._clock()
            due = [record for record in self._living(now) if is_abandoned(record, now)][: max(limit, 0)]
            before = [told(record, now) for record in due]
            for record in due:
                waits = waits_for_a_person(record.steps.values(), holds=record.holding)
                state = State.UNKNOWN if waits else State.RELEASED
                record.entry = replace(moved(record.entry, state, now), deaths=record.entry.deaths + 1)
                record.forget_at = None if waits else over_at(now, record.keep)
        crashpoints.crash_point("rescue.after")
        return before

    def ping(self) -> None:
        """Return: it always answers."""

    def create_schema(self) -> None:
        """Return: it has none."""

    def close(self) -> None:
        """Return: it has no connections."""

    def _record(self, digest: bytes, now: float) -> Record | None:
        record = self._records.get(digest)
        if record is not None and is_over(record, now):
            del self._records[digest]
            return None
        return record

    def _held_by(self, granted: Granted, now: float) -> Record | None:
        record = self._record(granted.digest, now)
        return record if record is not None and record.holds(granted.attempt, granted.fence) else None

    def _unmoved(self, entry: Entry, states: frozenset[State], now: float) -> Record | None:
        record = self._record(entry.digest, now)
        if record is None or not record.holds(entry.attempt, entry.fence):
            return None
        return record if record.entry.state is entry.state and entry.state in states else None

    def _acting(self, granted: Granted, now: float) -> Record | None:
        record = self._held_by(granted, now)
        return record if record is not None and record.entry.state is State.CLAIMED else None

    def _renewed(self, renewal: Renewal, now: float) -> bool:
        record = self._record(renewal.digest, now)
        if record is None or not record.holds(renewal.attempt, renewal.fence):
            return False
        if record.entry.state is not State.CLAIMED or record.ends <= now:
            return False
        record.ends, record.lease = now + renewal.lease, renewal.lease
        return True

    def _living(self, now: float) -> list[Record]:
        """All records in the order of their digests; what may be forgotten is."""
        for digest in [digest for digest, record in self._records.items() if is_over(record, now)]:
            del self._records[digest]
        return [self._records[digest] for digest in sorted(self._records)]

    def _all(self) -> list[Entry]:
        with self._lock:
            now = self._clock()
            return [told(record, now) for record in self._living(now)]


def _steady_clock() -> Callable[[], float]:
    """Epoch seconds that go on evenly when the machine's clock is set."""
    start = time.time() - time.monotonic()
    return lambda: start + time.monotonic()
