"""Terms and ticks in the memory of one process: for tests, and the plainest account of what such a store does."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from effectonce.domain.series import Instant
from effectonce.domain.terms import Seat, Term
from effectonce.domain.ticks import UNMARKED, Claimed, Recorded, Tick, TickClaim, TickState, soonest

_AHEAD = 60_000_000


@dataclass(slots=True)
class _Seat:
    term: Term
    who: str
    since: float
    ends: float


@dataclass(slots=True)
class _Ticks:
    """What one entry has had."""

    rows: dict[Instant, Recorded] = field(default_factory=dict)


class MemorySchedule:
    """A `ports.ScheduleStore`; *clock* gives epoch seconds and must not go back."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._seats: dict[str, _Seat] = {}
        self._ticks: dict[tuple[str, str], _Ticks] = {}

    @property
    def name(self) -> str:
        """Its URL."""
        return self._name

    def win(self, name: str, *, holder: bytes, who: str, length: float) -> Term | None:
        """See `ports.LeaseStore.win`."""
        with self._lock:
            now, seat = self._clock(), self._seats.get(name)
            if seat is not None and seat.ends > now:
                return seat.term if seat.term.holder == holder else None
            fence = max(seat.term.fence + 1 if seat else 0, int(now * 1_000_000))
            term = Term(name=name, fence=fence, holder=holder)
            self._seats[name] = _Seat(term, who, now, now + length)
            return term

    def renew_term(self, term: Term, *, length: float) -> bool:
        """See `ports.LeaseStore.renew_term`."""
        with self._lock:
            now = self._clock()
            if not self._stands(term, now):
                return False
            self._seats[term.name].ends = now + length
            return True

    def resign(self, term: Term) -> None:
        """See `ports.LeaseStore.resign`."""
        with self._lock:
            now = self._clock()
            if self._stands(term, now):
                self._seats[term.name].ends = now

    def seats(self) -> Sequence[Seat]:
        """See `ports.LeaseStore.seats`."""
        with self._lock:
            now = self._clock()
            return [
                Seat(name=name, fence=seat.term.fence, who=seat.who, since=seat.since, left=seat.ends - now)
                for name, seat in sorted(self._seats.items())
            ]

    def claim_ticks(self, term: Term, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        """See `ports.TickStore.claim_ticks`."""
        with self._lock:
            now = self._clock()
            if not self._stands(term, now):
                return [Claimed.FENCED] * len(claims)
            return [self._claim(term, claim, now) for claim in claims]

    def _claim(self, term: Term, claim: TickClaim, now: float) -> Claimed:
        tick = claim.tick
        rows = self._ticks.setdefault((tick.group, tick.name), _Ticks()).rows
        standing = rows.get(tick.instant)
        if standing is not None and standing.state is TickState.CLAIMED:
            rows[tick.instant] = replace(standing, state=claim.state, fence=term.fence, at=now)
            return Claimed.GRANTED
        if tick.instant > now * 1_000_000 + _AHEAD:
            return Claimed.AHEAD
        if rows and tick.instant <= max(rows):
            return Claimed.REFUSED
        rows[tick.instant] = Recorded(
            tick=tick, state=claim.state, fence=term.fence, at=now, missed=claim.missed, following=claim.following
        )
        return Claimed.GRANTED

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        """See `ports.TickStore.mark_ticks`."""
        with self._lock:
            for tick in ticks:
                rows = self._ticks.get((tick.group, tick.name), _Ticks()).rows
                standing = rows.get(tick.instant)
                if standing is not None and standing.state in UNMARKED:
                    rows[tick.instant] = replace(standing, state=TickState.SENT)

    def last_ticks(self, group: str, names: Sequence[str]) -> Mapping[str, Recorded]:
        """See `ports.TickStore.last_ticks`."""
        with self._lock:
            found = {name: self._ticks.get((group, name)) for name in names}
            return {name: ticks.rows[max(ticks.rows)] for name, ticks in found.items() if ticks and ticks.rows}

    def unmarked(self, group: str) -> Sequence[Recorded]:
        """See `ports.TickStore.unmarked`."""
        with self._lock:
            rows = [row for (where, _), ticks in self._ticks.items() if where == group for row in ticks.rows.values()]
        unmarked = [row for row in rows if row.state in UNMARKED]
        return sorted(unmarked, key=lambda row: (row.tick.instant, row.tick.name))

    def recent(self, *, limit: int) -> Sequence[Recorded]:
        """See `ports.TickStore.recent`."""
        with self._lock:
            rows = [row for ticks in self._ticks.values() for row in ticks.rows.values()]
        return sorted(rows, key=lambda row: -row.tick.instant)[:limit]

    def coming(self, *, limit: int) -> Sequence[Recorded]:
        """See `ports.TickStore.coming`."""
        with self._lock:
            last = [ticks.rows[max(ticks.rows)] for ticks in self._ticks.values() if ticks.rows]
        return soonest(last, limit=limit)

    def _stands(self, term: Term, now: float) -> bool:
        seat = self._seats.get(term.name)
        return seat is not None and seat.term == term and seat.ends > now
