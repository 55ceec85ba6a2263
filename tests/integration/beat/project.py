"""The project whose beats these tests run; addresses and schedule come from the environment."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from celery import Celery

from effectonce import EffectOnce, Leased

app = Celery("project", broker=os.environ["BEAT_BROKER"])
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    beat_schedule={
        name: {"task": "work", "args": (name,), **said, "schedule": timedelta(seconds=said["schedule"])}
        for name, said in json.loads(os.environ["BEAT_SCHEDULE"]).items()
    },
)
once = EffectOnce(
    app,
    ledger=os.environ["BEAT_LEDGER"],
    beat_lease_seconds=float(os.environ["BEAT_LEASE"]),
    beat_missed=os.environ.get("BEAT_MISSED", "latest"),
)


@app.task(name="work", once=Leased())
def work(name: str) -> None:
    _note(f"{name} {once.effect.tick}")


@app.task(name="plain")
def plain(name: Any) -> None:
    """Go to a queue that nobody reads."""


def _note(line: str) -> None:
    with Path(os.environ["BEAT_NOTES"]).open("a") as notes:
        notes.write(f"{line}\n")
