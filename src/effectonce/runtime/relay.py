"""Sending what is stored: at once by the process that stored it, and by relays where that one did not.

Both do the same: send, and when the broker has it, strike it off. A death in between sends it again, with the same id.
A broker that is away costs a message nothing: it goes back and is taken again. A message that the broker refuses is
tried ever more slowly, and then stuck.

Any number of relays may run at once: what one has taken the others pass over. That workers elect two of them only
saves the database from being asked by all.
"""

import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from effectonce import crashpoints
from effectonce.domain.outbox import (
    HOLD,
    Later,
    Stored,
    Stuck,
    after_refusal,
    marked_as_relayed,
    may_have_gone_out,
)
from effectonce.errors import LedgerUnavailable
from effectonce.events import Emit, Event, Name
from effectonce.ports.outbox import Broker, BrokerAway, OutboxStore

logger = logging.getLogger("effectonce")

BATCH: Final = 500
SEATS: Final = 2
TERM: Final = 15.0
"""Seconds for which a relay is elected."""

_PAUSE: Final = 1.0
_LONGEST: Final = 15.0
_REST: Final = 2.0
"""Seconds in which a process whose broker was away leaves its messages to the relays, so that bodies do not wait."""


class Dispatcher:
    """Sends what this process has just committed; what it cannot send it leaves to the relays."""

    def __init__(self, store: Callable[[], OutboxStore], broker: Broker, *, emit: Emit) -> None:
        self._store = store
        self._broker = broker
        self._emit = emit
        self._rests_until = 0.0

    def dispatch(self, stored: Sequence[Stored]) -> None:
        """Send now, and never raise: the work is committed, and its messages are safe."""
        if time.monotonic() < self._rests_until:
            return
        crashpoints.crash_point("dispatch.before")
        try:
            _send(self._store(), self._broker, stored, emit=self._emit, point="dispatch.after")
        except BrokerAway as away:
            self._rests_until = time.monotonic() + _REST
            logger.warning("the broker is away (%s): %d messages are left to the relay", away, len(stored) - away.sent)
        except LedgerUnavailable as error:
            logger.warning("messages went out and could not be struck off; they may go out again: %s", error.code)
        except Exception:
            logger.exception("messages could not be sent, and are left to the relay")


class Straight:
    """Sends what was never stored, because this app's policies are off."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def dispatch(self, unstored: Sequence[Stored]) -> None:
        """Send after the commit, as a caller would; raises what the broker said of the first that it did not take."""
        for error in self._broker.send([each.message for each in unstored]):
            if error is not None:
                raise error


class Relay:
    """Sends what is due, a batch at a time."""

    def __init__(self, store: Callable[[], OutboxStore], broker: Broker, *, emit: Emit) -> None:
        self._store = store
        self._broker = broker
        self._emit = emit
        self._pause = _PAUSE

    def relay(self, *, parked: bool = False, effect: bytes | None = None, at_once: bool = False) -> int:
        """Take one batch and send it; answers how many were taken, 0 when the broker is away.

        *parked*: also what is not due yet. *effect*: only what this effect has sent; *at_once*, also what its writer
        may be sending now.
        """
        store = self._store()
        if effect is None:
            taken = store.take(BATCH, hold=HOLD, parked=parked)
        else:
            taken = store.take_of(effect, hold=HOLD, at_once=at_once)
        if not taken:
            return 0
        taken = [marked_as_relayed(each) if may_have_gone_out(each) else each for each in taken]
        crashpoints.crash_point("relay.before")
        try:
            _send(store, self._broker, taken, emit=self._emit, point="relay.after")
        except BrokerAway as away:
            self._held_up(store, taken[away.sent :], away)
            return 0
        self._pause = _PAUSE
        return len(taken)

    def _held_up(self, store: OutboxStore, unsent: Sequence[Stored], away: BrokerAway) -> None:
        if self._pause == _PAUSE:
            self._emit(Event(name=Name.OUTBOX_HELD_UP, facts={"messages": len(unsent), "why": str(away)}))
        store.give_back(unsent, pause=self._pause)
        self._pause = min(self._pause * 2, _LONGEST)


class Elected:
    """A seat among the relays of all workers; asked for again before its term ends."""

    def __init__(self, store: Callable[[], OutboxStore], *, seats: int = SEATS, term: float = TERM) -> None:
        self._store = store
        self._seats = seats
        self._term = term
        self._holder = os.urandom(16)
        self._until = self._asks_at = 0.0

    def is_elected(self) -> bool:
        """Whether this relay is one of those that relay now."""
        now = time.monotonic()
        if now >= self._asks_at:
            has_seat = self._store().elect(self._holder, seats=self._seats, seconds=self._term)
            self._asks_at = now + self._term / 3
            self._until = now + self._term if has_seat else 0.0
        return now < self._until

    def resign(self) -> None:
        """Give the seat to another one, at an orderly end; one that cannot be given up ends by itself."""
        if self._until:
            self._until = self._asks_at = 0.0
            with suppress(LedgerUnavailable):
                self._store().resign(self._holder)


def _send(store: OutboxStore, broker: Broker, stored: Sequence[Stored], *, emit: Emit, point: str) -> None:
    try:
        answers = broker.send([each.message for each in stored])
    except BrokerAway as away:
        store.strike(stored[: away.sent])
        raise
    sent = [each for each, refusal in zip(stored, answers, strict=True) if refusal is None]
    _pass(point)
    store.strike(sent)
    if sent:
        emit(Event(name=Name.OUTBOX_SENT, facts={"messages": len(sent)}))
    for each, refusal in zip(stored, answers, strict=True):
        if refusal is not None:
            _refused(store, each, refusal, emit=emit)


def _pass(point: str) -> None:
    if point == "relay.after":
        crashpoints.crash_point("relay.after")
    else:
        crashpoints.crash_point("dispatch.after")


def _refused(store: OutboxStore, stored: Stored, refusal: Exception, *, emit: Emit) -> None:
    reason = f"{type(refusal).__name__}: {refusal}"[:500]
    match after_refusal(tries=max(stored.tries, 1)):
        case Later(pause=pause):
            store.refuse(stored, error=reason, pause=pause)
            logger.warning("the broker refused message %s of task %s: %s", stored.id, stored.message.task, reason)
        case Stuck():
            store.refuse(stored, error=reason, pause=None)
            emit(
                Event(
                    name=Name.OUTBOX_STUCK,
                    task=stored.message.task,
                    task_id=stored.message.task_id,
                    facts={"message": stored.id, "tries": stored.tries, "why": reason},
                )
            )
