"""The conductor: lets what is due go out under one term, each tick once.

It knows what the entries had, asks what is due, and claims it at the store on condition of the term. How a tick goes
out is its kind's: `sending` publishes after the claim and marks, `storing` commits the message with the claim. The term
is looked at before every step, so a leader that slept sends nothing more than what it had in its hand when it fell
asleep, and that under an id that its successor repeats.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from effectonce import crashpoints
from effectonce.domain.series import Instant
from effectonce.domain.terms import Term
from effectonce.domain.ticks import (
    Claimed,
    Due,
    Planned,
    Tick,
    TickClaim,
    TickState,
    decide,
    first_last,
)
from effectonce.events import Emit, Event, Name
from effectonce.ports import TickStore

logger = logging.getLogger("effectonce")

T = TypeVar("T")

BATCH = 20
"""Ticks that are claimed in one round trip; as many may be sent again after a crash."""

_KNOWN_AT_ONCE = 500


class Deposed(Exception):
    """The term is over; what was claimed and not sent is its successor's."""


class ClockWrong(Exception):
    """The store says that what this leader takes for now is in the future."""


class Conductor(ABC):
    """Lets the ticks of *group* go out under one term; not shared between threads.

    *term* tells the term while it may be trusted. *find* knows the schedule's entries by name. *note* lets the
    schedule know that a tick went out.
    """

    def __init__(
        self,
        store: TickStore,
        *,
        group: str,
        term: Callable[[], Term | None],
        find: Callable[[str], Planned | None],
        note: Callable[[Tick], None],
        emit: Emit,
        since: Instant,
    ) -> None:
        self._store = store
        self._group = group
        self._term = term
        self._find = find
        self._tell_schedule = note
        self._emit = emit
        self._since = since
        self._last: dict[str, Instant] = {}
        self._first_time: set[str] = set()
        self._unsent: dict[Tick, Planned] = {}
        self._unmarked: list[Tick] = []
        self._in_doubt = True

    def play(self, entries: Sequence[Planned], now: Instant) -> Mapping[str, Instant | None]:
        """Send what is due of these entries; answers when each is due next.

        Raises Deposed, ClockWrong and LedgerUnavailable; what was not reached then is still due.
        """
        self._finish()
        self._learn([entry for entry in entries if entry.name not in self._last], now)
        due = {entry.name: (entry, self._decide(entry, now)) for entry in entries}
        self._note_seen([entry for entry, what in due.values() if not what.send and what.skipped is None])
        self._take(_claims(self._group, due), {name: entry for name, (entry, _) in due.items()})
        return {entry.name: entry.series.after(max(self._last[entry.name], now)) for entry in entries}

    @property
    def has_unsent(self) -> bool:
        """Whether something is claimed that could not be sent."""
        return bool(self._unsent)

    def forget(self, name: str) -> None:
        """An entry has changed or gone: ask the store again what it had."""
        self._last.pop(name, None)

    def _finish(self) -> None:
        """Send and mark what an earlier pass or leader claimed and could not."""
        self._mark()
        if self._in_doubt:
            self._inherit()
        for batch in batches(list(self._unsent.items())):
            self._resume(batch)
        self._mark()

    @abstractmethod
    def _resume(self, batch: Sequence[tuple[Tick, Planned]]) -> None:
        """Let ticks go out that were claimed already."""

    @abstractmethod
    def _take(self, claims: Iterable[TickClaim], entries: Mapping[str, Planned]) -> None:
        """Claim ticks, and let those go out that are granted."""

    def _inherit(self) -> None:
        """Take over what stands claimed and unmarked: a dead leader's, or ours where the answer was lost."""
        for recorded in self._store.unmarked(self._group):
            tick = recorded.tick
            planned = self._find(tick.name)
            if recorded.state is TickState.STORED:
                self._went_out(tick, planned)
            elif planned is None:
                self._pass_over(tick, why="its entry is gone")
            else:
                self._unsent[tick] = planned
        self._in_doubt = False

    def _went_out(self, tick: Tick, planned: Planned | None) -> None:
        """Its message is on its way: only the schedule does not know."""
        if planned is not None:
            self._note(tick)
        self._unmarked.append(tick)

    def _learn(self, entries: Sequence[Planned], now: Instant) -> None:
        for batch in batches(entries, size=_KNOWN_AT_ONCE):
            known = self._store.last_ticks(self._group, [entry.name for entry in batch])
            for entry in batch:
                recorded = known.get(entry.name)
                if recorded is None:
                    self._first_time.add(entry.name)
                    self._last[entry.name] = first_last(entry, now=now)
                else:
                    self._last[entry.name] = recorded.tick.instant

    def _decide(self, entry: Planned, now: Instant) -> Due:
        return decide(entry, last=self._last[entry.name], now=now, since=self._since)

    def _note_seen(self, entries: Sequence[Planned]) -> None:
        """Write down from when on the ticks of a new entry count, so that a next leader knows."""
        new = [entry for entry in entries if entry.name in self._first_time]
        for batch in batches(new, size=_KNOWN_AT_ONCE):
            claims = [
                TickClaim(
                    tick=Tick(group=self._group, name=entry.name, instant=self._last[entry.name]),
                    state=TickState.SEEN,
                    following=entry.series.after(self._last[entry.name]),
                )
                for entry in batch
            ]
            for claim, answer in zip(claims, self._claim(claims), strict=True):
                self._took(claim, answer)

    def _claim(self, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        crashpoints.crash_point("tick.claim.before")
        self._in_doubt = True
        answers = self._check(self._store.claim_ticks(self._standing(), claims))
        self._in_doubt = False
        crashpoints.crash_point("tick.claim.after")
        return answers

    def _took(self, claim: TickClaim, answer: Claimed) -> bool:
        """Note what the entry has had by now; a refusal means that another leader was there, and is asked about."""
        tick = claim.tick
        self._first_time.discard(tick.name)
        if answer is Claimed.REFUSED:
            self._last.pop(tick.name, None)
            self._learn_one(tick)
            return False
        self._last[tick.name] = max(self._last.get(tick.name, tick.instant), tick.instant)
        if claim.missed:
            facts = {"entry": tick.name, "missed": claim.missed, "up_to": tick.text}
            self._emit(Event(name=Name.TICK_SKIPPED, facts=facts))
        return True

    def _learn_one(self, tick: Tick) -> None:
        recorded = self._store.last_ticks(self._group, [tick.name]).get(tick.name)
        self._last[tick.name] = recorded.tick.instant if recorded is not None else tick.instant

    def _check(self, answers: Sequence[Claimed]) -> Sequence[Claimed]:
        if Claimed.FENCED in answers:
            raise Deposed
        if Claimed.AHEAD in answers:
            raise ClockWrong
        return answers

    def _note(self, tick: Tick) -> None:
        """Let the schedule know; what it cannot take in must not be the reason to send again."""
        try:
            self._tell_schedule(tick)
        except Exception:
            logger.exception("the tick %s of %s went out, and its schedule could not note it", tick.text, tick.name)

    def _tell(self, tick: Tick, term: Term) -> None:
        facts = {"entry": tick.name, "instant": tick.text}
        self._emit(Event(name=Name.TICK_SENT, task_id=tick.task_id, fence=term.fence, facts=facts))

    def _mark(self) -> None:
        if self._unmarked:
            self._store.mark_ticks(self._unmarked)
            crashpoints.crash_point("tick.mark.after")
            self._unmarked = []

    def _pass_over(self, tick: Tick, *, why: str) -> None:
        self._claim([TickClaim(tick=tick, state=TickState.SKIPPED)])
        facts = {"entry": tick.name, "missed": 1, "up_to": tick.text, "why": why}
        self._emit(Event(name=Name.TICK_SKIPPED, facts=facts))

    def _standing(self) -> Term:
        term = self._term()
        if term is None:
            raise Deposed
        return term


def claim_of(tick: Tick) -> TickClaim:
    """A claim on a tick that is to be sent."""
    return TickClaim(tick=tick, state=TickState.CLAIMED)


def _claims(group: str, due: Mapping[str, tuple[Planned, Due]]) -> Iterable[TickClaim]:
    for name, (entry, what) in due.items():
        instants = [*what.send, *([] if what.skipped is None else [what.skipped])]
        for number, at in enumerate(instants):
            yield TickClaim(
                tick=Tick(group=group, name=name, instant=at),
                state=TickState.SKIPPED if at == what.skipped else TickState.CLAIMED,
                missed=what.missed if number == 0 else 0,
                following=entry.series.after(at),
            )


def batches(items: Sequence[T], *, size: int = BATCH) -> Iterable[Sequence[T]]:
    """The items, some at a time."""
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch
