"""How things stand, in one look: what is doubled, held, late or unsent, and what happened of late.

Each question has an answer in a time that does not grow with the ledger.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from effectonce.domain.claims import State
from effectonce.domain.outbox import Depth
from effectonce.domain.terms import Seat
from effectonce.domain.ticks import Recorded, TickState
from effectonce.errors import LedgerUnsuitable, SchemaMissing
from effectonce.events import Name
from effectonce.ports import LedgerStore, history_of, is_scheduling, is_transactional, survey_of
from effectonce.ports.history import Tally
from effectonce.ports.surveys import Size

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

LATE: Final = 60.0
"""Seconds after which a message that is due, or a tick, is late."""

TICKS: Final = 500
_DAY: Final = 24 * 3600.0


class Trouble(StrEnum):
    """What may be wrong; the words of the first line."""

    DOUBLED = "doubled"
    HELD = "held"
    LATE = "late"
    UNSENT = "unsent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How an app's ledger stands. *trouble*: how many of each there are; all four names are always there."""

    ledger: str
    claimed: int
    unknown: int
    poisoned: int
    outbox: Depth
    seats: Sequence[Seat]
    overdue: Sequence[Recorded]
    tallies: Sequence[Tally]
    size: Size
    trouble: Mapping[Trouble, int]

    @property
    def is_well(self) -> bool:
        """Whether nothing is doubled, held, late or unsent."""
        return not any(self.trouble.values())


def overview(once: "EffectOnce", *, minutes: int) -> Overview:
    """Ask the ledger; *minutes*: how far back counts go. Raises LedgerUnavailable."""
    ledgers = once.ledgers or (once.leases,)
    counts: Counter[State] = Counter()
    for ledger in ledgers:
        counts.update(_standing(ledger))
    outbox = _depth(ledgers)
    seats, recent = _beats(once)
    tallies = [tally for ledger in ledgers for tally in _tallies(history_of(ledger), minutes=minutes)]
    overdue = _overdue(recent, seats)
    unknown, poisoned = counts.get(State.UNKNOWN, 0), counts.get(State.POISONED, 0)
    late_messages = int(outbox.oldest > LATE)
    return Overview(
        ledger=", ".join(ledger.name for ledger in ledgers),
        claimed=counts.get(State.CLAIMED, 0),
        unknown=unknown,
        poisoned=poisoned,
        outbox=outbox,
        seats=seats,
        overdue=overdue,
        tallies=tallies,
        size=_size(ledgers, counts),
        trouble={
            Trouble.DOUBLED: _number(tallies, Name.FENCE_REFUSED) + _number(tallies, Name.LEASE_LOST),
            Trouble.HELD: unknown + poisoned,
            Trouble.LATE: len(overdue),
            Trouble.UNSENT: outbox.stuck + (outbox.ready if late_messages else 0),
        },
    )


def _standing(ledger: LedgerStore) -> Mapping[State, int]:
    survey = survey_of(ledger)
    return survey.standing() if survey is not None else ledger.counts()


def _depth(ledgers: Sequence[LedgerStore]) -> Depth:
    depths = [ledger.outbox.depth() for ledger in ledgers if is_transactional(ledger)]
    return Depth(
        ready=sum(depth.ready for depth in depths),
        parked=sum(depth.parked for depth in depths),
        stuck=sum(depth.stuck for depth in depths),
        oldest=max((depth.oldest for depth in depths), default=0.0),
    )


def _size(ledgers: Sequence[LedgerStore], counts: Counter[State]) -> Size:
    surveys = [survey for survey in map(survey_of, ledgers) if survey is not None]
    if len(surveys) < len(ledgers):
        return Size(entries=counts.total(), bytes=0)
    sizes = [survey.size() for survey in surveys]
    return Size(entries=sum(size.entries for size in sizes), bytes=sum(size.bytes for size in sizes))


def _tallies(history: Any, *, minutes: int) -> Sequence[Tally]:
    if history is None:
        return []
    try:
        found: Sequence[Tally] = history.tallies(minutes=minutes)
    except SchemaMissing:
        return []
    return found


def _beats(once: "EffectOnce") -> tuple[Sequence[Seat], Sequence[Recorded]]:
    leases = once.leases
    if not is_scheduling(leases):
        return [], []
    try:
        seats = leases.schedule.seats()
        return seats, leases.schedule.recent(limit=TICKS) if seats else []
    except LedgerUnsuitable:
        return [], []


def _overdue(recent: Sequence[Recorded], seats: Sequence[Seat]) -> list[Recorded]:
    """The last tick of each entry whose next one should have come: nobody leads, or the leader is stuck.

    Schedules that nobody has led for a day are old ones, and not late.
    """
    now = time.time()
    known = {seat.name for seat in seats if seat.is_held or -seat.left < _DAY}
    last: dict[tuple[str, str], Recorded] = {}
    for row in recent:
        name = (row.tick.group, row.tick.name)
        if row.tick.group in known and (name not in last or row.tick.instant > last[name].tick.instant):
            last[name] = row
    return [
        row
        for row in last.values()
        if row.following is not None and row.following / 1_000_000 < now - LATE and row.state is not TickState.SEEN
    ]


def _number(tallies: Sequence[Tally], name: Name) -> int:
    return sum(each.number for each in tallies if each.name == name.value)
