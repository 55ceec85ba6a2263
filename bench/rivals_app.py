"""The app of `bench rivals`: one body, once bare, once guarded, and once by each rival that could be loaded.

Rivals lie in a folder of their own, which comes last on the path: what they share with us is ours. Each child of the
worker appends a record of eight bytes to a file when a task is over: its latency, or 0 in a burn-down.
"""

import importlib
import os
import struct
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from celery import Celery, signals

from effectonce import EffectOnce, Leased, Transactional
from effectonce.lab.contenders.locks import CeleryOnce, CeleryOnceTask, CelerySingleton

sys.path.append(os.environ["BENCH_RIVALS"])

LEDGER = os.environ["BENCH_LEDGER"]
ROWS = 1000
RELIER_QUEUE = "low_priority"
UPDATE = sa.text("update work_rows set x = x + 1 where id = :id")
RECORD = struct.Struct("d")
LOCKS = {"celery-once": CeleryOnce(), "celery-singleton": CelerySingleton(), "celery-once-task": CeleryOnceTask()}

app = Celery("bench-rivals", broker=os.environ["BENCH_BROKER"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=16,
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
    singleton_backend_url=os.environ["BENCH_LOCKS"],
)
once = EffectOnce(app, ledger=LEDGER)
_done = os.open(os.environ["BENCH_DONE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
_engines: dict[int, sa.Engine] = {}
_begun: dict[str, float] = {}
"""When the message was due whose body runs: relier wraps arguments, so its body says it."""


def work(connection: Callable[[], Any], number: int, body: str) -> None:
    """Do nothing, wait 10 ms, or change one row."""
    if body == "10ms":
        time.sleep(0.01)
    elif body == "update":
        connection().execute(UPDATE, {"id": number % ROWS})


def alone(number: int, due: float, body: str) -> None:
    """The body in a transaction of its own."""
    if body != "update":
        work(lambda: None, number, body)
        return
    engine = _engines.get(os.getpid())
    if engine is None:
        engine = _engines[os.getpid()] = sa.create_engine(once.ledger.source.engine.url)  # type: ignore[attr-defined]
    with engine.begin() as connection:
        work(lambda: connection, number, body)


@app.task(name="bare")
def bare(number: int, due: float, body: str) -> None:
    """Nobody guards it."""
    alone(number, due, body)


@app.task(name="effectonce", once=(Leased if LEDGER.startswith("redis") else Transactional)("bench:{number}"))
def effectonce(number: int, due: float, body: str) -> None:
    """The guard does."""
    work(lambda: once.connection, number, body)


def _rival(name: str) -> Any:
    contender = LOCKS[name]
    contender.prepare(app, SimpleNamespace(locks=os.environ["BENCH_LOCKS"]))  # type: ignore[arg-type]
    return contender.task(app, alone, name=name, fields=("number",))


TASKS: dict[str, Any] = {"bare": bare, "effectonce": effectonce}
MISSING: dict[str, str] = {}
for _name in LOCKS:
    try:
        TASKS[_name] = _rival(_name)
    except ImportError as error:
        MISSING[_name] = str(error)


def _relier() -> Any:
    decorator: Any = importlib.import_module("relier").rl_task

    def relier(number: int, due: float, body: str) -> None:
        _begun["due"] = due
        alone(number, due, body)

    return decorator(queue=RELIER_QUEUE, idempotent=True, name="relier")(relier)


if os.environ.get("RELIER_REDIS_URL"):
    try:
        relier_app: Any = importlib.import_module("relier.tasks.app").celery_app
        TASKS["relier"] = _relier()
    except Exception as error:  # noqa: BLE001 - whatever keeps it from being loaded is told
        MISSING["relier"] = f"{type(error).__name__}: {error}"


@signals.task_postrun.connect
def _note(args: Any = (), **_: Any) -> None:
    """One record for each task that is over; one that carries no due time has none to be late for."""
    due = next((each for each in args or () if isinstance(each, float)), _begun.get("due", 0.0))
    os.write(_done, RECORD.pack(time.time() - due if due else 0.0))
