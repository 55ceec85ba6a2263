"""The keeper of visibility: tells the broker again and again that this worker still holds what it holds.

One step renews every delivery of the worker in one call. It runs in a thread of its own, since the event loop stands
still while a body of the solo pool runs, and during a warm shutdown. A second loop, the *sweeper*, gives back what
dead workers held; it may take long, and renewals must not wait for it.

A delivery that the broker no longer counts as ours is left alone from then on: it belongs to somebody else, who renews
it. After a crash nobody renews, and the messages come back when the timeout has passed. A stopped process renews
nothing either, and loses its messages, as it should.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from effectonce import crashpoints
from effectonce.domain.visibility import Hold
from effectonce.events import Emit, Event, Name
from effectonce.ports import Deliveries, Described


@dataclass(slots=True)
class _Kept:
    """What is known of one message that this worker holds; *message* tells it from a later one of the same tag."""

    message: Any
    hold: Hold
    described: Described
    let_go: bool = False
    missed: bool = False


class VisibilityKeeper:
    """Renews the deliveries of one worker, and sweeps.

    *deliveries* is asked each time: it changes when a worker reconnects.
    """

    def __init__(
        self,
        deliveries: Callable[[], Deliveries | None],
        *,
        at_most: float | None,
        emit: Emit,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._deliveries = deliveries
        self._at_most = at_most
        self._emit = emit
        self._clock = clock
        self._wall = wall
        self._kept: dict[str, _Kept] = {}

    def renew(self) -> None:
        """Renew all that is held; raises BrokerAway, and then nothing is known to have happened."""
        deliveries = self._deliveries()
        if deliveries is None:
            self._kept.clear()
            return
        self._note(deliveries)
        self._let_go_where_due()
        tags = [tag for tag, kept in self._kept.items() if not kept.let_go]
        if not tags:
            return
        crashpoints.crash_point("visibility.before")
        missing = deliveries.renew(tags)
        crashpoints.crash_point("visibility.after")
        for tag in missing:
            self._kept[tag].missed = True
        self._emit(Event(name=Name.DELIVERY_RENEWED, facts={"renewed": len(tags) - len(missing), "held": len(tags)}))

    def sweep(self) -> None:
        """Give back what dead workers held; raises BrokerAway."""
        deliveries = self._deliveries()
        if deliveries is not None:
            crashpoints.crash_point("sweep.before")
            deliveries.sweep()
            crashpoints.crash_point("sweep.after")

    def _note(self, deliveries: Deliveries) -> None:
        """Learn what is held now; forget what is not any more."""
        held = deliveries.held()
        known, now = self._kept, self._clock()
        self._kept = {}
        for tag, message in held.items():
            kept = known.get(tag)
            if kept is None or kept.message is not message:
                described = deliveries.describe(message)
                ahead = 0.0 if described.due is None else described.due - self._wall()
                kept = _Kept(message, Hold(since=now, due=now + ahead), described)
            self._kept[tag] = kept

    def _let_go_where_due(self) -> None:
        """Let go of what is stuck, and of what the broker had not at the last step and we still hold.

        What was missing once may have been an acknowledgement on its way, and is gone from here by now.
        """
        now = self._clock()
        for kept in self._kept.values():
            if kept.let_go:
                continue
            if kept.missed:
                self._let_go(kept, "the broker does not count it as held any more")
            elif kept.hold.is_too_old(now, at_most=self._at_most):
                self._let_go(kept, f"held for longer than {self._at_most:.0f} s")

    def _let_go(self, kept: _Kept, why: str) -> None:
        kept.let_go = True
        described = kept.described
        self._emit(Event(name=Name.DELIVERY_LOST, task=described.task, task_id=described.task_id, facts={"why": why}))
