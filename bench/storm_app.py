"""The app of the storm: one slow effect, whose bodies are counted in a file."""

import os
import time

from celery import Celery

from bench.storm import BODY_SECONDS
from effectonce import EffectOnce, Transactional

app = Celery("storm", broker=os.environ["BENCH_BROKER"])
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=16, broker_connection_retry_on_startup=True)
once = EffectOnce(app, ledger=os.environ["BENCH_LEDGER"])


@app.task(once=Transactional("storm:{key}"))
def slow(key: str) -> None:
    """Take effect slowly."""
    with open(os.environ["BENCH_BODIES"], "a") as file:  # noqa: PTH123 - the shortest way to append
        file.write("x")
    time.sleep(BODY_SECONDS)
