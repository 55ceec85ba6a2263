"""The app of the crash matrix: one flow that passes every boundary of the slice, transactional and leased.

The flow sends a message (transactional), asks for two retries, then acts (leased, after longer than a third of its
lease), and goes on to a link. A deadly one kills its process at its first starts, so that its claim is taken over.
"""

import os
import signal
import time
from typing import Any

from effectonce import Leased, Transactional, effect, session
from tests.integration.worker.shop import FOLDER, LEASE, app, began, charges, metadata, once, outside

__all__ = ["app", "charges", "linked", "metadata", "once"]

app.conf.task_default_queue = os.environ.get("FLOW_QUEUE", "celery")
app.conf.effectonce_relay = os.environ.get("FLOW_RELAYS", "yes") == "yes"


def _prepare(task: Any, order: str, *, deadly: int, retries: int) -> None:
    began(f"flow:{order}")
    for death in (FOLDER / f"died-{order}-{number}" for number in range(deadly)):
        if not death.exists():
            death.touch()
            os.kill(os.getpid(), signal.SIGKILL)
    if task.request.retries < retries:
        raise task.retry(countdown=0.05)


@app.task(bind=True, once=Transactional("flow:{order}", fingerprint=("order",)), max_retries=None)
def charge(self: Any, order: str, *, deadly: int = 0, retries: int = 2, pause: float = 0) -> str:
    session.execute(charges.insert().values(order_id=int(order), amount=1))
    noted.apply_async((order,), queue=app.conf.task_default_queue)
    _prepare(self, order, deadly=deadly, retries=retries)
    time.sleep(pause)
    return "done"


@app.task(bind=True, once=Leased("flow:{order}", fingerprint=("order",)), max_retries=None)
def mail(self: Any, order: str, *, deadly: int = 0, retries: int = 2) -> str:
    _prepare(self, order, deadly=deadly, retries=retries)
    time.sleep(LEASE * 0.6)
    effect.step("mail", outside, f"mail:{order} {effect.idempotency_key('mail')}")
    return "done"


@app.task(
    bind=True,
    acks_late=True,
    reject_on_worker_lost=True,
    once=Leased("flow:{order}", fingerprint=("order",), mode="observe"),
    max_retries=None,
)
def watched(self: Any, order: str, *, deadly: int = 0) -> str:
    """Acknowledged late by its own wish: a policy that only watches changes nothing about that."""
    _prepare(self, order, deadly=deadly, retries=1)
    outside(f"mail:{order} {effect.idempotency_key('mail')}")
    return "done"


@app.task(once=Leased("noted:{order}"))
def noted(order: str) -> None:
    """What a transactional flow sends: in tries that are rolled back it is not sent."""
    outside(f"noted:{order} {effect.idempotency_key('noted')}")


@app.task(once=Leased("linked:{order}"))
def linked(done: str, order: str) -> str:
    outside(f"linked:{order} {effect.idempotency_key('linked')}")
    return done
