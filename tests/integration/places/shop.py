"""An app whose tenants have a ledger each, and whose tasks are named in every way that there is."""

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from celery import Celery

from effectonce import EffectOnce, Leased, Transactional

FOLDER = Path(os.environ["PLACES_FOLDER"])

app = Celery("places", broker=os.environ["PLACES_BROKER"], backend=os.environ["PLACES_BROKER"])
app.conf.update(
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": 60},
    task_default_queue="places",
)


def tenant(_task: Any, request: Any) -> str:
    """Whose effect it is: a header of the message says so."""
    return str((request.headers or {}).get("tenant") or "")


once = EffectOnce(
    app,
    ledger={"default": os.environ["PLACES_ONE"], "blue": os.environ["PLACES_TWO"]},
    namespace=tenant,
    lease_seconds=5,
    create_schema=True,
)


def began(what: str) -> None:
    """Note that a body ran; one short write with O_APPEND is whole."""
    with (FOLDER / "bodies").open("a") as file:
        file.write(f"{what} {once.effect.key}\n")


@app.task(name="charge", once=Transactional("charge:{order}"))
def charge(order: str) -> str:
    began(f"charge:{order}")
    once.session.execute(sa.text("insert into charges values (:order)"), {"order": order})
    mail.delay(order)
    return f"charged {order}"


@app.task(name="mail", once=Leased())
def mail(order: str) -> str:
    """It names no key: whoever sends it does."""
    began(f"mail:{order}")
    return f"mailed {order}"


@app.task(name="parent", once=Leased("parent:{order}"))
def parent(order: str, times: int = 2) -> str:
    """Sends the same message several times, each an effect of its own."""
    for _ in range(times):
        mail.delay(order)
    return f"sent {times}"


@app.task(name="import", once=Leased("import:{file}", key_at_call=True))
def import_(file: str) -> str:
    began(f"import:{file}")
    return f"imported {file}"
