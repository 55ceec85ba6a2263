"""The conductor where ticks and messages share a database: a tick and its message are one commit.

A leader that dies before the commit leaves nothing: the tick is still due, and its successor sends it. One that dies
after it leaves the message in the outbox, from where any relay sends it. So no tick is claimed without its message,
and a broker that is away holds up nothing. What is left is the outbox's own question: a sender that dies between
sending a message and striking it off leaves one that is sent again, with the same id.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from effectonce import crashpoints
from effectonce.domain.outbox import Message, Stored
from effectonce.domain.ticks import Planned, Tick, TickClaim, TickState
from effectonce.ports import StoringTickStore
from effectonce.runtime.conductor import Conductor, batches, claim_of

logger = logging.getLogger("effectonce")

Leaving = tuple[TickClaim, Sequence[Message]]


class StoringConductor(Conductor):
    """Sends the ticks of a group through the outbox.

    *record* makes the messages of a tick and sends nothing; an error means that it cannot be sent. *depart* sends what
    was committed, and never raises: what it cannot send a relay does.
    """

    _store: StoringTickStore

    def __init__(
        self,
        store: StoringTickStore,
        *,
        record: Callable[[Planned, Tick], Sequence[Message]],
        depart: Callable[[Sequence[Stored]], None],
        **others: Any,
    ) -> None:
        super().__init__(store, **others)
        self._record = record
        self._depart = depart

    def _resume(self, batch: Sequence[tuple[Tick, Planned]]) -> None:
        """What an older leader claimed by itself, without a message."""
        self._leave([self._prepared(claim_of(tick), entry) for tick, entry in batch])
        for tick, _ in batch:
            self._unsent.pop(tick, None)

    def _take(self, claims: Iterable[TickClaim], entries: Mapping[str, Planned]) -> None:
        for batch in batches(list(claims)):
            self._leave([self._prepared(claim, entries[claim.tick.name]) for claim in batch])

    def _prepared(self, claim: TickClaim, entry: Planned) -> Leaving:
        if claim.state is not TickState.CLAIMED:
            return claim, ()
        tick = claim.tick
        try:
            return replace(claim, state=TickState.STORED), self._record(entry, tick)
        except Exception:
            logger.exception("the tick %s of %s cannot be sent", tick.text, tick.name)
            return replace(claim, state=TickState.SKIPPED, missed=claim.missed + 1), ()

    def _leave(self, leaving: Sequence[Leaving]) -> None:
        """Commit ticks and messages, send the messages, and let the schedule know."""
        crashpoints.crash_point("tick.claim.before")
        self._in_doubt = True
        claims, messages = [claim for claim, _ in leaving], [of_claim for _, of_claim in leaving]
        answers, stored = self._store.claim_and_store(self._standing(), claims, messages)
        self._check(answers)
        self._in_doubt = False
        crashpoints.crash_point("tick.claim.after")
        gone = [
            claim.tick
            for claim, answer in zip(claims, answers, strict=True)
            if self._took(claim, answer) and claim.state is TickState.STORED
        ]
        # A leader that slept here leaves its messages to the relay of whoever leads now.
        term = self._standing()
        self._depart(stored)
        for tick in gone:
            self._tell(tick, term)
            self._note(tick)
            self._unmarked.append(tick)
        self._mark()
