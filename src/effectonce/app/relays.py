"""The relays of the workers, as a step of Celery's blueprint.

Each worker has one, in its main process. Two of all are elected; the others look now and then whether a seat is free.
A relay that dies keeps its seat for the rest of its term, which is why there are two.
"""

from typing import TYPE_CHECKING, Any

from celery import bootsteps

from effectonce.app.bootsteps import Checked, guarded_tasks
from effectonce.errors import SettingsInvalid
from effectonce.ports import is_transactional
from effectonce.runtime.loop import Loop
from effectonce.runtime.relay import Elected

if TYPE_CHECKING:
    from collections.abc import Callable

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
        self._loop: Loop | None = None
        self._seat: Elected | None = None
        self._deafen: Callable[[], None] | None = None

    def include_if(self, parent: Any) -> bool:
        """Only where the ledger has an outbox, and relaying is not switched off."""
        once = parent.app.effectonce
        try:
            settings = once.settings
            return bool(settings.relay and settings.ledger is not None and is_transactional(once.ledger))
        except SettingsInvalid:
            if guarded_tasks(parent.app):
                raise
            return False

    def start(self, parent: Any) -> None:
        """Start the loop; a restart of the blueprint finds it running."""
        if self._loop is not None:
            return
        once = parent.app.effectonce
        relay = once.relay()
        seat = self._seat = Elected(once.outbox_store)
        loop = self._loop = Loop("relay", lambda: seat.is_elected() and relay.relay() > 0, interval=LOOK_EVERY)
        self._deafen = once.outbox_store().listen(loop.wake, url=once.settings.direct_url)
        loop.start()

    def stop(self, _parent: Any) -> None:
        """End the loop, and give the seat to another worker."""
        if self._deafen is not None:
            self._deafen()
        if self._loop is not None:
            self._loop.stop()
        if self._seat is not None:
            self._seat.resign()

    terminate = stop
