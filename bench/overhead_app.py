"""The app whose tasks are compared: each body once bare and once guarded, both acknowledged late."""

import os
import time
from typing import Any

from celery import Celery, signals

from effectonce import EffectOnce, Leased, Transactional

LEDGER = os.environ["BENCH_LEDGER"]

app = Celery("bench", broker=os.environ["BENCH_BROKER"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=16,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)
once = EffectOnce(app, ledger=LEDGER)
KIND = Leased if LEDGER.startswith("redis") else Transactional


@app.task
def bare(number: str, sent: float, seconds: float) -> None:
    """Do the work, unguarded."""
    _work(seconds)


@app.task(once=KIND("bench:{number}", fingerprint=("number",)))
def guarded(number: str, sent: float, seconds: float) -> None:
    """Do the work, guarded."""
    _work(seconds)


def _work(seconds: float) -> None:
    if seconds:
        time.sleep(seconds)


@signals.task_postrun.connect
def _note(args: Any = (), **_: Any) -> None:
    """Note how long after its sending a task was over, in the open loop only."""
    if args and args[1]:
        with open(os.environ["BENCH_LATENCIES"], "a") as file:  # noqa: PTH123 - the shortest way, it is timed
            file.write(f"{time.time() - args[1]:.6f}\n")
