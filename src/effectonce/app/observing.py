"""Who is told of what happens in this process: log lines always, the history in workers, metrics and traces if asked.

An observer that fails is left out from then on, with one line that says so: seeing never stands in the way of doing.
"""

import logging
from typing import TYPE_CHECKING, Any

from celery.utils.dispatch import Signal

from effectonce.events import Event
from effectonce.observers import log, log_ordinary_too
from effectonce.ports import history_of
from effectonce.ports.history import HistoryStore
from effectonce.runtime.historian import Historian

if TYPE_CHECKING:
    from collections.abc import Callable

    from effectonce.app.extension import EffectOnce

logger = logging.getLogger("effectonce")

happened = Signal(name="effectonce_happened", providing_args={"event"})
"""Celery-style signal: receivers get ``sender`` (the app) and ``event`` (`effectonce.events.Event`) in the process and
thread where it happened. What a receiver raises is logged by Celery and harms nothing."""


class Observing:
    """The observers of one process."""

    def __init__(self, once: "EffectOnce", *, records: bool) -> None:
        settings = once.settings
        self._app = once.app
        self._historian = Historian(lambda place: _history(once, place)) if records and settings.history_rows else None
        self._others: list[Callable[[Event], None]] = []
        self._log = log_ordinary_too if settings.log_ordinary else log
        if self._historian is not None:
            self._others.append(self._historian.note)
        if settings.metrics or settings.metrics_port is not None:
            from effectonce.observers.metrics import count  # noqa: PLC0415 - an extra

            self._others.append(count)
        if settings.traces:
            from effectonce.observers.traces import note  # noqa: PLC0415 - an extra

            self._others.append(note)

    def emit(self, event: Event) -> None:
        """Tell all of them."""
        self._log(event)
        for observe in self._others:
            try:
                observe(event)
            except Exception:
                self._others = [each for each in self._others if each is not observe]
                logger.exception("an observer of events failed, and is not told any more")
        if happened.receivers:
            happened.send(sender=self._app, event=event)

    def stop(self) -> None:
        """Write what is not written yet."""
        if self._historian is not None:
            self._historian.stop()


def _history(once: "EffectOnce", place: str) -> HistoryStore | None:
    """The history beside the entry; of what is no effect's, that of the first ledger which has one."""
    keeping = [store for store in once.stores if history_of(store) is not None]
    here: Any = next((store for store in keeping if store.name == place), None)
    if here is None and not place:
        here = next(iter(keeping), None)
    return None if here is None else history_of(here)
