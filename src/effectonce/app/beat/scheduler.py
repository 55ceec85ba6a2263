"""The scheduler that ``celery beat -S once`` starts.

It wraps another one, and lets it work only while this process leads. A standby asks for the term and does nothing else:
it has no schedule open. When the term is over the schedule is closed, and made anew if it is won again.
"""

import logging
import os
import socket
from typing import Any, Final

from celery import beat

from effectonce.app.beat.reign import Reign, open_book, scheduler_class
from effectonce.domain.ticks import Missed
from effectonce.errors import LedgerUnavailable, LedgerUnsuitable, SettingsInvalid
from effectonce.ports import ScheduleStore, is_scheduling
from effectonce.runtime.conductor import ClockWrong, Deposed
from effectonce.runtime.elector import Elector
from effectonce.runtime.loop import Loop

logger = logging.getLogger("effectonce")

_LOOKS: Final = 10
"""How often a lease a standby, or a leader whose store is away, looks again."""

_RELAY_EVERY: Final = 1.0
"""Seconds between two looks of the leader into the outbox."""


class OnceScheduler(beat.Scheduler):
    """As many of these as one likes: one leads, and each tick is sent once.

    Raises SettingsInvalid when the app has no EffectOnce or its settings are bad, LedgerUnsuitable when its ledger
    cannot hold terms.
    """

    lock_key = None
    """RedBeat looks for this on whatever scheduler runs; there is no lock of its kind."""

    def __init__(self, app: Any, schedule_filename: Any = None, lazy: bool = False, **options: Any) -> None:  # noqa: FBT001, FBT002 - Celery's own
        super().__init__(app, lazy=True, **options)
        self._once = once_of(app)
        settings = self._once.settings
        self._options = {"schedule_filename": schedule_filename, **options}
        self._missed = Missed(settings.beat_missed)
        self._length: float = settings.beat_lease_seconds
        self._reign: Reign | None = None
        self._elector: Elector | None = None
        self._relay: Loop | None = None
        if not lazy:
            store_of(self._once)
            scheduler_class(settings.beat_scheduler)
            self._elector = Elector(
                lambda: store_of(self._once),
                name=group_of(self._once),
                who=f"{socket.gethostname()}:{os.getpid()}",
                length=self._length,
                emit=self._once.emit,
            )
            self._elector.start()

    @property
    def info(self) -> str:
        """What beat prints when it starts."""
        settings = self._once.settings
        return (
            f"    . once -> leads under a term of {settings.beat_lease_seconds:g} s in {self._once.leases.name}\n"
            f"    . wraps -> {settings.beat_scheduler}"
        )

    def tick(self, *_: Any, **__: Any) -> float:
        """Work as the leader, or wait; answers the seconds until the next call."""
        elector = self._elector
        pause = self._length / _LOOKS
        if elector is None:
            return pause
        try:
            reign = self._current(elector)
            if reign is None:
                return pause
            rest = reign.play()
        except Deposed:
            elector.resign(why="another leads, or the lease ended")
        except ClockWrong:
            logger.error("this machine's clock is more than a minute ahead of the ledger's: it does not lead")  # noqa: TRY400 - no bug of ours
            elector.resign(why="the clock is wrong", pause=3 * self._length)
        except LedgerUnavailable as error:
            logger.warning("beat waits for its ledger: %s", error)
        except Exception:
            logger.exception("beat could not work, and lets another one lead")
            elector.resign(why="it failed", pause=self._length)
        else:
            if reign.unsent_for > self._length:
                elector.resign(why="the broker cannot be reached", pause=self._length)
            return rest
        return pause

    def _current(self, elector: Elector) -> Reign | None:
        """The reign of the term that this process holds; one whose term is over is closed first."""
        term = elector.term
        if self._reign is not None and self._reign.term is not term:
            reign, self._reign = self._reign, None
            reign.book.abandon()
        if term is not None and self._reign is None:
            settings = self._once.settings
            book = open_book(self.app, settings.beat_scheduler, missed=self._missed, options=self._options)
            self._reign = Reign(self._once, book, store_of(self._once), term=term, trusted=lambda: elector.term)
            if self._reign.stores_messages:
                self._start_relay(elector)
        return self._reign

    def _start_relay(self, elector: Elector) -> None:
        """Send, while we lead, what is left in the outbox: there may be no worker that does."""
        if self._relay is not None or not self._once.settings.relay:
            return
        relay = self._once.relay()
        self._relay = Loop("relay", lambda: elector.term is not None and relay.relay() > 0, interval=_RELAY_EVERY)
        self._relay.start()

    def sync(self) -> None:
        """Let the wrapped scheduler save what it knows, while we lead."""
        reign = self._reign
        if reign is not None and self._elector is not None and self._elector.term is reign.term:
            reign.book.inner.sync()

    def close(self) -> None:
        """Save and close the schedule, then let another lead; it may be called twice."""
        reign, self._reign = self._reign, None
        elector, self._elector = self._elector, None
        if self._relay is not None:
            self._relay.stop()
            self._relay = None
        try:
            if reign is not None:
                leads = elector is not None and elector.term is reign.term
                (reign.book.close if leads else reign.book.abandon)()
        finally:
            if elector is not None:
                elector.stop()


def once_of(app: Any) -> Any:
    """The app's EffectOnce; raises SettingsInvalid where there is none."""
    once = getattr(app, "effectonce", None)
    if once is None:
        fault = "celery beat -S once: this app has no EffectOnce; write EffectOnce(app, ledger=...) beside it"
        raise SettingsInvalid(faults=[fault])
    return once


def store_of(once: Any) -> ScheduleStore:
    """Where terms and ticks are: with the leases; raises LedgerUnsuitable."""
    ledger = once.leases
    if not is_scheduling(ledger):
        raise LedgerUnsuitable(ledger=ledger.name, policy="beat", task="", reason="it holds no terms")
    return ledger.schedule


def group_of(once: Any) -> str:
    """What beats of one schedule have in common: namespace, app and wrapped scheduler. One leads a group."""
    settings = once.settings
    namespace = settings.namespace if isinstance(settings.namespace, str) else ""
    wrapped = settings.beat_scheduler
    path = wrapped if isinstance(wrapped, str) else f"{wrapped.__module__}:{wrapped.__qualname__}"
    return ":".join(("beat", namespace, once.app.main or "", path.replace(":", ".")))
