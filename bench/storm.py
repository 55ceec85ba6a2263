"""1,000 duplicates of one key at once, while the first still runs: statements at the store, copies at the broker."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import redis
import sqlalchemy as sa

from bench.report import progress
from tests.services import Fleet

BODY_SECONDS = 5.0


def storm(fleet: Fleet, duplicates: int) -> dict[str, Any]:
    """Send them, let one worker (prefork 2) work them off, and count what they cost; the body must run once."""
    broker, ledger = str(fleet.redis().fresh_url()), str(fleet.postgresql().fresh_url())
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder, "bodies")
        bodies.touch()
        os.environ.update(BENCH_BROKER=broker, BENCH_LEDGER=ledger, BENCH_BODIES=str(bodies))
        sys.modules.pop("bench.storm_app", None)
        from bench import storm_app  # noqa: PLC0415 - it reads the environment

        storm_app.once.ledger.create_schema()
        engine: sa.Engine = storm_app.once.ledger.source.engine  # type: ignore[attr-defined]
        for _ in range(duplicates):
            storm_app.slow.apply_async(("one",))
        worker = _worker(folder)
        try:
            told = _watch(broker, engine, bodies, duplicates)
        finally:
            worker.terminate()
            worker.wait(30)
            storm_app.once.ledger.close()
        return {
            "what": "duplicates at once",
            "duplicates": duplicates,
            "bodies": bodies.stat().st_size,
            **told,
        }


def _worker(folder: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "celery", "-A", "bench.storm_app", "worker", "-P", "prefork", "-c", "2"]
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with Path(folder, "worker.log").open("wb") as log:
        return subprocess.Popen([*command, "-l", "WARNING"], stdout=log, stderr=subprocess.STDOUT, env=env)


def _watch(broker: str, engine: sa.Engine, bodies: Path, duplicates: int) -> dict[str, Any]:
    """Until nothing waits at the broker; how deep its queue was meanwhile, and what the database was asked."""
    client = redis.Redis.from_url(broker)
    before, deepest, copies = _asked(engine), 0, 0
    began = time.monotonic()
    while time.monotonic() < began + 300:
        waiting = int(client.llen("celery")) + int(client.hlen("unacked"))  # type: ignore[arg-type]
        deepest = max(deepest, waiting)
        copies = max(copies, int(client.hlen("unacked")))  # type: ignore[arg-type]
        if bodies.stat().st_size and not waiting:
            break
        progress(f"{waiting} of {duplicates} duplicates wait")
        time.sleep(0.1)
    lasted = time.monotonic() - began
    ended = _asked(engine)
    return {
        "seconds": round(lasted, 1),
        "deepest_queue": deepest,
        "most_put_off_at_once": copies,
        "left_at_broker": int(client.llen("celery")) + int(client.hlen("unacked")),  # type: ignore[arg-type]
        "transactions_a_duplicate": round((ended - before) / duplicates, 2),
    }


def _asked(engine: sa.Engine) -> int:
    """How many transactions the database has ended."""
    with engine.connect() as connection:
        words = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"
        return int(connection.execute(sa.text(words)).scalar() or 0)
