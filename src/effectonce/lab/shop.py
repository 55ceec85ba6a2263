"""The shop of the demo: an app with one plain task and one guarded one that do the same work.

The work is to charge an order: a row in a table, and then the rest of the work, which takes a while. The plain task
follows the usual advice (acknowledge late, requeue when the worker is lost).
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import Celery, current_task, signals

from effectonce import EffectOnce, Transactional
from effectonce.lab.charges import Charges
from effectonce.lab.journal import Fact, Journal, What
from effectonce.lab.place import Place

VISIBILITY = 3
"""Seconds after which the broker delivers a message again that nobody has acknowledged."""
LEASE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """The app with its two tasks."""

    app: Any
    once: EffectOnce
    tasks: dict[str, Any]


def open_shop(place: Place) -> Shop:
    """Make the app for *place*; connects to nothing yet."""
    app = Celery("demo", broker=place.broker, backend=place.results, set_as_current=False)
    app.conf.update(_configuration(place))
    once = EffectOnce(
        app,
        ledger=place.ledger,
        schema=place.schema,
        namespace=place.name,
        lease_seconds=LEASE,
        # The demo wants what the keeper prevents: a message that comes again while its body runs.
        renew_visibility=False,
    )
    journal = Journal(Path(place.journal))
    plain_charges = Charges(place.plain, task="plain", schema=place.schema)
    guarded_charges = Charges(place.ledger, task="guarded", schema=place.schema)

    @app.task(name="plain", shared=False, acks_late=True, reject_on_worker_lost=True)
    def plain(order_id: int, amount: int, seconds: float) -> str:
        with _noted(journal, order_id):
            plain_charges.charge(order_id, amount)
            _do_the_rest(journal, order_id, seconds)
        return "charged"

    @app.task(name="guarded", shared=False, once=Transactional("charge:{order_id}"))
    def guarded(order_id: int, amount: int, seconds: float) -> str:
        with _noted(journal, order_id):
            once.session.execute(guarded_charges.row(order_id, amount))
            _do_the_rest(journal, order_id, seconds)
        return "charged"

    def note_delivery(*, sender: Any, args: Any, **_: Any) -> None:
        if sender.app is app:
            _note(journal, "delivered", args[0])

    signals.task_prerun.connect(note_delivery, weak=False)
    return Shop(app=app, once=once, tasks={"plain": plain, "guarded": guarded})


def _configuration(place: Place) -> dict[str, Any]:
    redis = place.broker.startswith(("redis", "valkey"))
    transport = {
        "visibility_timeout": VISIBILITY,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        # A worker that is killed while it looks for messages to give back leaves this lock behind.
        "unacked_mutex_expire": 5,
        # The broker may be the user's: nothing of ours meets what is his.
        "global_keyprefix": f"{place.name}:",
    }
    return {
        "broker_transport_options": transport if redis else {},
        "result_backend_transport_options": {"global_keyprefix": f"{place.name}:"} if redis else {},
        "broker_connection_retry_on_startup": True,
        "task_default_queue": place.name,
        "worker_prefetch_multiplier": 1,
        "worker_enable_remote_control": False,
        "result_expires": 3600,
    }


@contextmanager
def _noted(journal: Journal, order: int) -> Iterator[None]:
    _note(journal, "began", order)
    try:
        yield
    finally:
        _note(journal, "ended", order)


def _do_the_rest(journal: Journal, order: int, seconds: float) -> None:
    _note(journal, "charged", order)
    time.sleep(seconds)


def _note(journal: Journal, what: What, order: int) -> None:
    request = current_task.request
    fact = Fact(
        what=what,
        pid=os.getpid(),
        task=current_task.name,
        order=order,
        message=request.id,
        redelivered=bool((request.delivery_info or {}).get("redelivered")),
    )
    journal.note(fact)
