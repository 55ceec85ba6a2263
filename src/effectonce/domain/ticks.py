"""Which ticks are due, and what becomes of the missed ones.

A tick is one instant of one entry. What an entry has had is known by its *last* tick alone: only later instants may
come, so no instant comes twice, whatever beat asks. Several may be due at once, because nobody led for a while or the
leader was held up. All but the latest of them are missed; which are sent all the same is the entry's policy.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from hashlib import blake2b
from typing import Final
from uuid import UUID

from effectonce.domain.series import Instant, Series, text_of

MOST_AT_ONCE: Final = 100
"""How many ticks of one entry ``all`` sends when it catches up; older ones are passed over."""

COUNTED: Final = 1000
"""How far missed instants are counted."""

_UUID_MASK: Final = 0xF << 76 | 0x3 << 62
_UUID_8: Final = 0x8 << 76 | 0x2 << 62


class Missed(StrEnum):
    """What becomes of ticks whose time has passed."""

    LATEST = "latest"
    ALL = "all"
    SKIP = "skip"


class TickState(IntEnum):
    """How far a tick has come. The numbers stand in stores."""

    SEEN = 1
    """The entry was seen for the first time; ticks up to this instant are not wanted."""

    CLAIMED = 2
    """It is being sent, or whoever was sending it is gone: it is sent again, with the same id."""

    SENT = 3
    SKIPPED = 4

    STORED = 5
    """Its message is committed with it, and goes out whoever lives; the schedule may not know of it yet."""


UNMARKED: Final = frozenset({TickState.CLAIMED, TickState.STORED})
"""States of ticks that somebody still has to do something about."""


class Claimed(IntEnum):
    """What a store answers to a claim on a tick. The numbers are those of the scripts."""

    REFUSED = 0
    """This instant or a later one was had already."""

    GRANTED = 1
    AHEAD = 2
    """The instant lies in the future of the store's clock: the leader's clock is wrong."""

    FENCED = 3
    """The term has ended, or another leader has won."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """One instant of the entry *name* of the schedule *group*."""

    group: str
    name: str
    instant: Instant

    @property
    def entry(self) -> bytes:
        """What stores know the entry by."""
        return entry_digest(self.group, self.name)

    @property
    def text(self) -> str:
        """The instant, for people and keys."""
        return text_of(self.instant)

    @property
    def task_id(self) -> str:
        """The id of its message, the same whoever sends it and however often."""
        made = int.from_bytes(blake2b(self.entry + self.instant.to_bytes(8, signed=True), digest_size=16).digest())
        return str(UUID(int=made & ~_UUID_MASK | _UUID_8))


@dataclass(frozen=True, slots=True, kw_only=True)
class TickClaim:
    """A claim on a tick, or the note that it is passed over; *missed* counts those since the entry's last one.

    *following* is the instant that comes next, for people.
    """

    tick: Tick
    state: TickState
    missed: int = 0
    following: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A tick as its store has it; *at* is epoch seconds, *missed* counts those passed over just before it."""

    tick: Tick
    state: TickState
    fence: int
    at: float
    missed: int
    following: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """Ticks to send, oldest first, and *skipped*: the latest of those that are not sent, to be noted as had.

    *missed* counts all that are passed over, up to `COUNTED`.
    """

    send: tuple[Instant, ...] = ()
    skipped: Instant | None = None
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """An entry of a schedule, as much of it as its ticks depend on.

    *start*: what to take for its last tick where the store knows none; None wants the first tick at once. *life*:
    microseconds after its instant at which a tick is of no use any more; None for never.
    """

    name: str
    series: Series
    missed: Missed
    start: Instant | None
    life: Instant | None = None


def decide(planned: Planned, *, last: Instant, now: Instant, since: Instant) -> Due:
    """Say what is due of an entry that had *last*, under a leader that leads since *since*."""
    series = planned.series
    latest = series.latest(now)
    if latest is None or latest <= last:
        return Due()
    missed = _count(series, latest, last)
    if _is_stale(planned, latest, now) or (planned.missed is Missed.SKIP and latest < since):
        return Due(skipped=latest, missed=min(missed + 1, COUNTED))
    if planned.missed is not Missed.ALL:
        return Due(send=(latest,), missed=missed)
    fresh = [each for each in _back(series, latest, last, MOST_AT_ONCE) if not _is_stale(planned, each, now)]
    return Due(send=tuple(reversed(fresh)), missed=_count(series, fresh[-1], last))


def soonest(last: Iterable[Recorded], *, limit: int) -> list[Recorded]:
    """Those of the last ticks that are followed by another one, by when that is."""
    followed = [(row.following, row.tick.name, row) for row in last if row.following is not None]
    return [row for *_, row in sorted(followed, key=lambda each: each[:2])[:limit]]


def first_last(planned: Planned, *, now: Instant) -> Instant:
    """What stands for the last tick of an entry that the store does not know."""
    if planned.start is not None:
        return min(planned.start, now)
    latest = planned.series.latest(now)
    return now if latest is None else latest - 1


def entry_digest(group: str, name: str) -> bytes:
    """What stores know an entry by: its name within its group."""
    return blake2b(f"{len(group)}:{group}{name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _is_stale(planned: Planned, at: Instant, now: Instant) -> bool:
    return planned.life is not None and at + planned.life <= now


def _back(series: Series, latest: Instant, last: Instant, most: int) -> list[Instant]:
    found = [latest]
    while len(found) < most:
        before = series.latest(found[-1] - 1)
        if before is None or before <= last:
            break
        found.append(before)
    return found


def _count(series: Series, before: Instant, last: Instant) -> int:
    """How many instants lie between *last* and *before*, both left out."""
    return len(_back(series, before, last, COUNTED + 1)) - 1
