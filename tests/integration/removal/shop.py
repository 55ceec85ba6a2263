"""A project that uses the library, and is going to take it out again; its mode comes from the environment."""

import os
from pathlib import Path
from typing import Any

from celery import Celery

from effectonce import EffectOnce, Leased, Transactional
from tests.integration.removal.bodies import ship_order, took

app = Celery("removal", broker=os.environ["DRILL_BROKER"], backend=os.environ["DRILL_BROKER"])
app.conf.update(worker_prefetch_multiplier=1, effectonce_mode=os.environ.get("DRILL_MODE", "enforce"))
once = EffectOnce(
    app,
    ledger=f"sqlite:///{Path(os.environ['DRILL_FOLDER']) / 'ledger.sqlite'}",
    far_eta="park",
    lease_seconds=1,
    renew_visibility=False,
)


@app.task(name="pay", once=Transactional("pay:{order}"))
def pay(order: str) -> str:
    mail.delay(order)
    if order == "1":
        mail.apply_async(["later"], countdown=86_400)  # due beyond the visibility timeout, so it is parked
    return took("pay", order)


@app.task(name="mail", once=Leased("mail:{order}"))
def mail(order: str) -> str:
    return took("mail", order)


@app.task(name="ship", bind=True, once=Leased("ship:{order}", on_unknown="hold"), max_retries=3)
def ship(self: Any, order: str) -> str:
    return ship_order(self, order)
