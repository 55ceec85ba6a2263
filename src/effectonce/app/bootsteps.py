"""The loops of a worker, as steps of Celery's blueprints.

They run in the worker's main process. `Checked` refuses to start a worker whose settings are bad; `Rescues` frees
what nobody holds any more; `Prunes` takes away what is over; `Watches` stops consuming while the ledger is away. A
worker whose app has no guarded task gets none of them.
"""

from collections.abc import Sequence
from typing import Any

from celery import bootsteps, current_app
from celery.concurrency import get_implementation
from celery.signals import worker_process_shutdown
from celery.utils.log import get_logger

import effectonce.app.remote  # noqa: F401 - a command that workers answer
from effectonce.app.exporter import prepare, serve
from effectonce.app.visibility import KeepsVisibility
from effectonce.domain.modes import Mode
from effectonce.domain.policies import SET_BY_US, Policy, Transactional
from effectonce.errors import LedgerUnsuitable, SettingsInvalid
from effectonce.ports import LedgerStore, is_transactional
from effectonce.runtime.loop import Loop
from effectonce.runtime.pruner import PruningLoop
from effectonce.runtime.rescuer import BATCH, Rescuer
from effectonce.runtime.sentry import Sentry

logger = get_logger("effectonce")

LOOK_EVERY = 2.0
"""Seconds between two looks at the ledger."""

PRUNE_EVERY = 60.0
"""Seconds between two looks whether a pass of the pruner is due."""


def add_steps(app: Any) -> None:
    """Let the workers of *app* run the loops."""
    app.steps["worker"].update({Checked, Rescues, Prunes, Records})
    worker_process_shutdown.connect(_children_write, weak=False, dispatch_uid="effectonce.history")
    app.steps["consumer"].update({Watches, KeepsVisibility})


def guarded_tasks(app: Any) -> list[Any]:
    """The tasks of *app* that carry a policy."""
    return [task for task in app.tasks.values() if isinstance(getattr(task, "once", None), Policy)]


def enforces(app: Any) -> bool:
    """Whether a task of *app* carries a policy that is enforced here."""
    return any(mode_of(task) is Mode.ENFORCE for task in guarded_tasks(app))


def records(app: Any) -> bool:
    """Whether a task of *app* carries a policy that writes to the ledger here."""
    return any(mode_of(task) is not Mode.OFF for task in guarded_tasks(app))


def mode_of(task: Any) -> Mode:
    """How far a guarded task's policy acts."""
    guard = task.app.effectonce.guard_of(task)
    found: Mode = guard.mode
    return found


class Checked(bootsteps.Step):
    """Reads the settings when the worker is made, and says what the ledger cannot serve."""

    label = "EffectOnce"

    def include_if(self, parent: Any) -> bool:
        """Only where there is something to guard."""
        return bool(guarded_tasks(parent.app))

    def create(self, parent: Any) -> None:
        """Read and check; what is raised here stops the start of the worker."""
        once, conf = parent.app.effectonce, parent.app.conf
        _ = once.settings
        for task in guarded_tasks(parent.app):
            if mode_of(task) is not Mode.ENFORCE:
                _take_back_acknowledgement(task, conf)
        if not records(parent.app):
            return
        _check_pool(parent.pool_cls, once.stores)
        once.keep_history()
        prepare(once)
        if conf.worker_deduplicate_successful_tasks and enforces(parent.app):
            fault = (
                "worker_deduplicate_successful_tasks hangs chords whose worker died (celery 5.7); "
                "guarded tasks do not need it: switch it off"
            )
            raise SettingsInvalid(faults=[fault])
        for task in guarded_tasks(parent.app):
            if mode_of(task) is not Mode.ENFORCE:
                continue
            if isinstance(task.once, Transactional):
                _check_transactional(once.ledgers, task.name)


def _check_transactional(ledgers: Sequence[LedgerStore], task: str) -> None:
    for ledger in ledgers:
        if not is_transactional(ledger):
            facts = {"ledger": ledger.name, "policy": "Transactional", "task": task}
            logger.error("%s", LedgerUnsuitable(**facts, reason="it is not a SQL database"))


def _check_pool(pool: type, stores: Sequence[LedgerStore]) -> None:
    from effectonce.stores.memory import MemoryLedger  # noqa: PLC0415 - only the store in use is loaded

    own = [store.name for store in stores if isinstance(store, MemoryLedger)]
    if own and issubclass(pool, get_implementation("prefork")):
        fault = (
            f"{own[0]} lives in one process, and each process of the prefork pool would have one of its own, which "
            "guards nothing: name a ledger that they share (sqlite:///effects.sqlite), or use the pool threads or solo"
        )
        raise SettingsInvalid(faults=[fault])


def _take_back_acknowledgement(task: Any, conf: Any) -> None:
    """Acknowledge as without a policy: what its policy set before anybody knew the mode is undone."""
    configured = {"acks_late": conf.task_acks_late, "reject_on_worker_lost": conf.task_reject_on_worker_lost}
    for option in getattr(type(task), SET_BY_US, ()):
        setattr(task, option, configured[option])


class Rescues(bootsteps.StartStopStep):
    """Runs the rescuer twice a lease."""

    label = "Rescuer"
    requires = (Checked, "celery.worker.components:Pool")  # the pool forks before a loop holds anything

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._loop: Loop | None = None

    def include_if(self, parent: Any) -> bool:
        """Only where something is written down."""
        return records(parent.app)

    def start(self, parent: Any) -> None:
        """Start the loop; a restart of the blueprint finds it running."""
        once = parent.app.effectonce
        rescuer = Rescuer(lambda: once.stores, emit=once.emit)
        interval = min(once.settings.lease_seconds / 2, 30.0)
        self._loop = Loop("rescuer", lambda: rescuer.rescue() >= BATCH, interval=interval)
        self._loop.start()

    def stop(self, _parent: Any) -> None:
        """End the loop."""
        if self._loop is not None:
            self._loop.stop()

    terminate = stop


def _children_write(**_: Any) -> None:
    """A child of a pool ends."""
    once = getattr(current_app, "effectonce", None)
    if once is not None:
        once.write_history()


class Records(bootsteps.StartStopStep):
    """Shows metrics where that is asked for, and writes what is left of the history when the worker ends."""

    label = "Historian"
    requires = (Checked,)

    def include_if(self, parent: Any) -> bool:
        """Only where there is something to guard."""
        return bool(guarded_tasks(parent.app))

    def start(self, parent: Any) -> None:
        """Answer Prometheus."""
        once = parent.app.effectonce
        if once.settings.metrics_port is not None:
            serve(once, port=once.settings.metrics_port)

    def stop(self, parent: Any) -> None:
        """The loops have ended: nothing more is to come from them."""
        parent.app.effectonce.write_history()

    terminate = stop


class Prunes(Rescues):
    """Looks now and then whether the ledger is to be pruned."""

    label = "Pruner"

    def start(self, parent: Any) -> None:
        """Start the loop; a restart of the blueprint finds it running."""
        once = parent.app.effectonce
        self._loop = Loop(
            "pruner",
            PruningLoop(lambda: once.stores, emit=once.emit, history_rows=once.settings.history_rows).step,
            interval=PRUNE_EVERY,
        )
        self._loop.start()


class Watches(bootsteps.StartStopStep):
    """Runs the sentry beside the consumer of task messages."""

    label = "Sentry"
    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **options: Any) -> None:
        super().__init__(parent, **options)
        self._loop: Loop | None = None
        self._paused = False

    def include_if(self, parent: Any) -> bool:
        """Only where nothing may run without the ledger."""
        return enforces(parent.app)

    def start(self, parent: Any) -> None:
        """Start the loop; a restart of the blueprint finds it running."""
        self._paused = False
        if self._loop is not None:
            return
        once = parent.app.effectonce
        sentry = Sentry(
            lambda: (once.ledgers, (once.leases,)) if once.settings.leases is not None else (once.ledgers,),
            pause=lambda: parent.call_soon(self._pause, parent),
            resume=lambda: parent.call_soon(self._resume, parent),
            emit=once.emit,
        )

        def look() -> bool:
            sentry.look()
            return False

        self._loop = Loop("sentry", look, interval=LOOK_EVERY)
        self._loop.start()

    def shutdown(self, _parent: Any) -> None:
        """End the loop."""
        if self._loop is not None:
            self._loop.stop()
            self._loop = None

    def _pause(self, parent: Any) -> None:
        if not self._paused and parent.task_consumer is not None:
            self._paused = True
            logger.warning("stopped consuming: the ledger does not answer; what this worker holds is kept")
            parent.task_consumer.cancel()

    def _resume(self, parent: Any) -> None:
        if self._paused and parent.task_consumer is not None:
            self._paused = False
            logger.warning("consuming again: the ledger answers")
            parent.task_consumer.consume()
