"""The relays of the workers, as a step of Celery's blueprint.

Each worker has one, in its main process. Two of all are elected; the others look now and then whether a seat is free.
A relay that dies keeps its seat for the rest of its term, which is why there are two.
"""

from typing import TYPE_CHECKING, Any

from celery import bootsteps

from effectonce.app.bootsteps import Checked, guarded_tasks
from effectonce.errors import SettingsInvalid
from effectonce.ports import LedgerStore, is_transactional
from effectonce.runtime.loop import Loop
from effectonce.runtime.relay import Elected

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

LOOK_EVERY = 0.5
"""Seconds between two looks into the outbox."""


def add_relays(app: Any) -> None:
    """Let the workers of *app* relay."""
    app.steps["worker"].add(Relays)


class Relays(bootsteps.StartStopStep):
    """Sends what is left in the outbox."""

    label = "Relay"
    requires = (Checked, "celery.worker.components:Pool")  # the pool forks before a loop holds anything

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._running: list[_Running] = []

    def include_if(self, parent: Any) -> bool:
        """Only where a ledger has an outbox, and relaying is not switched off."""
        once = parent.app.effectonce
        try:
            return bool(once.settings.relay and any(is_transactional(ledger) for ledger in once.ledgers))
        except SettingsInvalid:
            if guarded_tasks(parent.app):
                raise
            return False

    def start(self, parent: Any) -> None:
        """Start the loops; a restart of the blueprint finds them running."""
        if not self._running:
            once = parent.app.effectonce
            self._running = [_Running(once, ledger) for ledger in once.ledgers if is_transactional(ledger)]

    def stop(self, _parent: Any) -> None:
        """End the loops, and give the seats to another worker."""
        for each in self._running:
            each.stop()

    terminate = stop


class _Running:
    """The relay of one ledger's outbox."""

    def __init__(self, once: "EffectOnce", ledger: LedgerStore) -> None:
        store = once.outbox_store(ledger)
        relay, seat = once.relay(ledger), Elected(lambda: store)
        self._seat = seat
        self._loop = Loop("relay", lambda: seat.is_elected() and relay.relay() > 0, interval=LOOK_EVERY)
        url = once.settings.direct_url if len(once.ledgers) == 1 else None
        self._deafen = store.listen(self._loop.wake, url=url)
        self._loop.start()

    def stop(self) -> None:
        if self._deafen is not None:
            self._deafen()
        self._loop.stop()
        self._seat.resign()
