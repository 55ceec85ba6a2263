"""The same project after the library was taken out."""

import os
from typing import Any

from celery import Celery

from tests.integration.removal.bodies import ship_order, took

app = Celery("removal", broker=os.environ["DRILL_BROKER"], backend=os.environ["DRILL_BROKER"])
app.conf.update(worker_prefetch_multiplier=1)


@app.task(name="pay")
def pay(order: str) -> str:
    mail.delay(order)
    return took("pay", order)


@app.task(name="mail")
def mail(order: str) -> str:
    return took("mail", order)


@app.task(name="ship", bind=True, max_retries=3)
def ship(self: Any, order: str) -> str:
    return ship_order(self, order)
