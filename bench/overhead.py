"""What the guard costs a task, end to end: a full queue worked off, and an open loop at a fixed rate.

Both tasks run in one worker (prefork 2) on one broker, A B B A, so that a noisy machine disturbs both alike. A queue is
filled while nobody listens; the clock runs from the order to listen until the broker holds no message any more. In
the open loop latency counts from the intended instant of sending. Aim: 0.85 for an empty body, 0.95 for 10 ms.
"""

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import redis

from tests.services import Fleet

PACKAGES = ("effectonce", "celery", "kombu", "redis", "sqlalchemy", "psycopg")


def main(words: list[str]) -> None:
    """Measure all pairs and print one line each; writes bench/results/overhead.json."""
    options = _options(words)
    fleet = Fleet()
    try:
        rows = [row for ledger in options.ledgers for row in _measure_pair(fleet, ledger, options)]
    finally:
        fleet.close()
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    versions = {name: version(name) for name in PACKAGES}
    Path("bench/results").mkdir(parents=True, exist_ok=True)
    Path("bench/results/overhead.json").write_text(
        json.dumps({"machine": machine, "versions": versions, "rows": rows}, indent=2) + "\n"
    )


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench overhead", description=__doc__)
    parser.add_argument("--messages", type=int, default=1500, help="messages in each queue")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of A B B A")
    parser.add_argument("--rate", type=float, default=60.0, help="messages a second in the open loop")
    parser.add_argument(
        "--ledgers", nargs="+", default=["postgresql", "redis"], choices=["postgresql", "redis", "sqlite"]
    )
    return parser.parse_args(words)


def _measure_pair(fleet: Fleet, ledger: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, _place(fleet, ledger, folder) as env:
        os.environ.update(env)
        sys.modules.pop("bench.overhead_app", None)
        bench = importlib.import_module("bench.overhead_app")
        bench.once.ledger.create_schema()
        with _worker(folder) as ready:
            ready(bench.app)
            rows = [_row(bench, ledger, seconds, options) for seconds in (0.0, 0.01)]
    for row in rows:
        print(
            f"redis+{row['ledger']:<11} body {row['body_ms']:>4} ms  "
            f"guarded/bare {row['ratio_median']:.2f} ({row['ratio_min']:.2f}-{row['ratio_max']:.2f})  "
            f"added p50 {row['added_p50_ms']:+.2f} ms  p99 {row['added_p99_ms']:+.2f} ms"
        )
    return rows


@contextmanager
def _place(fleet: Fleet, ledger: str, folder: str) -> Iterator[dict[str, str]]:
    broker = fleet.redis().fresh_url()
    if ledger == "sqlite":
        url = f"sqlite:///{folder}/ledger.sqlite"
    else:
        url = (fleet.postgresql() if ledger == "postgresql" else fleet.redis()).fresh_url()
    yield {"BENCH_BROKER": broker, "BENCH_LEDGER": url, "BENCH_LATENCIES": f"{folder}/latencies"}


@contextmanager
def _worker(folder: str) -> Iterator[Any]:
    log = Path(folder, "worker.log")
    command = [sys.executable, "-m", "celery", "-A", "bench.overhead_app", "worker", "-P", "prefork", "-c", "2"]
    command += ["-l", "INFO", "-Q", "idle", "--without-gossip", "--without-mingle"]
    # INFO is Celery's own voice; tasks say nothing at WARNING, which is what production logs.
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=env)

    def ready(_app: Any) -> None:
        end = time.monotonic() + 30
        while " ready." not in log.read_text():
            if process.poll() is not None or time.monotonic() > end:
                sys.exit(log.read_text())
            time.sleep(0.02)

    try:
        yield ready
    finally:
        process.terminate()
        process.wait(20)


def _row(bench: Any, ledger: str, seconds: float, options: argparse.Namespace) -> dict[str, Any]:
    messages = options.messages if not seconds else options.messages // 2
    _drain(bench, bench.guarded, 50, seconds)
    ratios, rates = [], {"bare": [], "guarded": []}  # type: ignore[var-annotated]
    for _ in range(options.rounds):
        taken = {"bare": 0.0, "guarded": 0.0}
        for name in ("bare", "guarded", "guarded", "bare"):
            lasted = _drain(bench, getattr(bench, name), messages, seconds)
            taken[name] += lasted
            rates[name].append(messages / lasted)
        ratios.append(taken["bare"] / taken["guarded"])
    late = {name: _open_loop(bench, getattr(bench, name), seconds, options.rate) for name in ("bare", "guarded")}
    return {
        "broker": "redis",
        "ledger": ledger,
        "body_ms": int(seconds * 1000),
        "ratio_median": statistics.median(ratios),
        "ratio_min": min(ratios),
        "ratio_max": max(ratios),
        "bare_per_s": statistics.median(rates["bare"]),
        "guarded_per_s": statistics.median(rates["guarded"]),
        "added_p50_ms": (late["guarded"][0] - late["bare"][0]) * 1000,
        "added_p99_ms": (late["guarded"][1] - late["bare"][1]) * 1000,
    }


def _drain(bench: Any, task: Any, messages: int, seconds: float) -> float:
    """Fill a queue that nobody listens to, let the worker listen, and time until it is empty."""
    queue = f"q-{uuid.uuid4().hex}"
    with bench.app.producer_pool.acquire() as producer:
        for number in range(messages):
            task.apply_async((f"{queue}-{number}", 0, seconds), queue=queue, producer=producer)
    client = redis.Redis.from_url(os.environ["BENCH_BROKER"])
    began = time.perf_counter()
    bench.app.control.add_consumer(queue)
    _until_empty(client, queue)
    lasted = time.perf_counter() - began
    bench.app.control.cancel_consumer(queue, reply=True)
    return lasted


def _until_empty(client: Any, queue: str) -> None:
    while True:
        with client.pipeline(transaction=False) as pipe:
            waiting, unacked = pipe.llen(queue).hlen("unacked").execute()
        if not waiting and not unacked:
            return
        time.sleep(0.003)


def _open_loop(bench: Any, task: Any, seconds: float, rate: float) -> tuple[float, float]:
    """Send at a fixed rate whatever the worker does; answers latency p50 and p99 from the intended instants."""
    number, queue, file = int(rate * 8), f"q-{uuid.uuid4().hex}", Path(os.environ["BENCH_LATENCIES"])
    file.write_text("")
    bench.app.control.add_consumer(queue, reply=True)
    began = time.time() + 0.2
    with bench.app.producer_pool.acquire() as producer:
        for at in range(number):
            due = began + at / rate
            time.sleep(max(due - time.time(), 0))
            task.apply_async((f"{queue}-{at}", due, seconds), queue=queue, producer=producer)
    client = redis.Redis.from_url(os.environ["BENCH_BROKER"])
    _until_empty(client, queue)
    bench.app.control.cancel_consumer(queue, reply=True)
    seen = sorted(float(line) for line in file.read_text().split())
    return seen[len(seen) // 2], seen[int(len(seen) * 0.99)]
