"""The step of a worker that keeps its deliveries visible as held, for all of its tasks, guarded or not.

It runs in the main process, which holds the messages also when children carry out the bodies. It ends in `shutdown`
and not in `stop`: a warm shutdown begins with `stop`, while bodies still run.
"""

import threading
from collections.abc import Callable
from typing import Any

from celery import bootsteps
from celery.utils.log import get_logger

from effectonce.app.brokers import deliveries_of, visibility_timeout, why_not_renewed
from effectonce.domain.modes import Mode
from effectonce.domain.visibility import renewal_interval
from effectonce.errors import SettingsInvalid
from effectonce.ports.outbox import BrokerAway
from effectonce.runtime.loop import Loop
from effectonce.runtime.visibility import VisibilityKeeper

logger = get_logger("effectonce")


class KeepsVisibility(bootsteps.StartStopStep):
    """Runs the keeper of visibility and the sweeper beside the consumer of task messages."""

    label = "Keeper of visibility"
    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._loops: list[Loop] = []
        self._channel: Any = None
        self._deliveries: Any = None
        self._lock = threading.Lock()

    def include_if(self, parent: Any) -> bool:
        """Only where it is on, the broker has a visibility timeout, and kombu is known."""
        if visibility_timeout(parent.app) is None or not _is_on(parent.app):
            return False
        why = why_not_renewed(parent.app)
        if why is not None:
            logger.warning(
                "%s: the visibility of held messages is not renewed, so bodies and etas longer than the visibility "
                "timeout are delivered again",
                why,
            )
        return why is None

    def start(self, parent: Any) -> None:
        """Start the loops; a restart of the blueprint finds them running."""
        if self._loops:
            return
        deliveries = self._current(parent)
        if deliveries is None:
            return
        interval = renewal_interval(deliveries.timeout)
        at_most = parent.app.effectonce.settings.renew_at_most_seconds
        keeper = VisibilityKeeper(lambda: self._current(parent), at_most=at_most, emit=parent.app.effectonce.emit)
        steps = {"keeper of visibility": keeper.renew, "sweeper": keeper.sweep}
        self._loops = [
            Loop(name, _patiently(name, step), interval=interval, slowest=interval) for name, step in steps.items()
        ]
        for loop in self._loops:
            loop.start()

    def shutdown(self, _parent: Any) -> None:
        """End the loops."""
        for loop in self._loops:
            loop.stop()
        self._loops = []

    def _current(self, parent: Any) -> Any:
        """What the worker holds through the channel that it has now; a reconnect makes a new one."""
        with self._lock:
            consumer = parent.task_consumer
            channel = consumer.channel if consumer is not None else None
            if channel is not self._channel:
                if self._deliveries is not None:
                    self._deliveries.close()
                self._channel, self._deliveries = channel, deliveries_of(channel)
            return self._deliveries


def _patiently(name: str, step: Callable[[], None]) -> Callable[[], bool]:
    """A step of a loop that says once that the broker is away, and once that it is back."""
    away = False

    def taken() -> bool:
        nonlocal away
        try:
            step()
        except BrokerAway as error:
            if not away:
                logger.warning("the %s cannot ask the broker, and goes on trying: %s", name, error)
            away = True
        else:
            if away:
                logger.info("the %s has the broker's answer again", name)
            away = False
        return False

    return taken


def _is_on(app: Any) -> bool:
    """Read the switch. A worker without guarded tasks starts with settings that cannot be used, and says so."""
    try:
        return bool(app.effectonce.settings.renew_visibility) and app.effectonce.mode is Mode.ENFORCE
    except SettingsInvalid as error:
        logger.error("%s", error)  # noqa: TRY400 - the fault is in the settings, not in this code
        return False
