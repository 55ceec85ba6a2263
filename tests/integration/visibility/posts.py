"""The app of these tests' workers: tasks without any guard, so that a second body is seen as one.

Bodies note each start and each end in an append-only file, with the time.
"""

import json
import os
import time
from pathlib import Path

from celery import Celery

from effectonce import EffectOnce

FOLDER = Path(os.environ["POSTS_FOLDER"])

app = Celery("posts", broker=os.environ["POSTS_BROKER"])
app.conf.update(
    broker_transport_options=json.loads(os.environ["POSTS_OPTIONS"]),
    broker_connection_retry_on_startup=True,
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
)
once = EffectOnce(app, ledger="memory://", **json.loads(os.environ["POSTS_SETTINGS"]))


def note(what: str, *facts: object) -> None:
    """One short write with O_APPEND is whole."""
    with (FOLDER / "notes").open("a") as file:
        file.write(" ".join(map(str, [what, os.getpid(), time.monotonic(), *facts])) + "\n")


@app.task
def work(what: str, seconds: float = 0) -> None:
    """A body that waits without burning time."""
    note(f"{what}:began")
    time.sleep(seconds)
    note(f"{what}:ended")


@app.task(acks_late=False)
def early(what: str) -> None:
    """A task that is acknowledged when its body starts."""
    note(f"{what}:began")
    note(f"{what}:ended")


@app.task
def hold(what: str) -> None:
    """A body that runs until the test lets it go."""
    note(f"{what}:began")
    end = time.monotonic() + 60
    while not (FOLDER / f"let-go-{what}").exists() and time.monotonic() < end:
        time.sleep(0.02)
    note(f"{what}:ended")
