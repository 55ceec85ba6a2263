"""How late the leader's ticks are with ten thousand entries: each entry every few minutes, none at the same instant.

Lateness is the time from a tick's instant to the confirmed send of its message, as the broker's queue has it in order.
The beat is the real one, on a Redis broker and the ledger that is asked for; its schedule stays in memory.
"""

import argparse
import json
import os
import platform
import statistics
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from celery import Celery
from celery.beat import Scheduler

from effectonce import EffectOnce
from effectonce.app.beat import reign
from effectonce.app.beat.scheduler import OnceScheduler
from tests.services import Fleet

LENGTH = 10.0
SETTLE = 10.0
"""Seconds after the first pass that are left out: it notes all entries, and what fell due meanwhile waits."""


def main(words: list[str]) -> None:
    """Measure each ledger; write the results and print them."""
    parser = argparse.ArgumentParser(prog="bench beat")
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--ledgers", nargs="+", default=["redis", "postgresql"])
    asked = parser.parse_args(words)
    fleet = Fleet()
    try:
        results = [_measure(fleet, ledger, asked.entries, asked.seconds) for ledger in asked.ledgers]
    finally:
        fleet.close()
    machine = {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
    Path("bench/results/beat.json").write_text(json.dumps({"machine": machine, "results": results}, indent=2))
    print(json.dumps(results, indent=2))


def _measure(fleet: Fleet, ledger: str, entries: int, seconds: float) -> dict[str, Any]:
    broker = fleet.redis().fresh_url()
    store = fleet.redis().fresh_url() if ledger == "redis" else fleet.postgresql().fresh_url()
    app = Celery("bench", broker=broker, set_as_current=False)
    # Intervals of two to seven minutes, all different, so that the instants are spread.
    app.conf.beat_schedule = {
        f"entry {number}": {"task": "work", "schedule": 120 + 300 * number / entries} for number in range(entries)
    }
    app.conf.result_expires = None
    once = EffectOnce(app, ledger=store, beat_scheduler=Scheduler, beat_lease_seconds=LENGTH)
    once.ledger.create_schema()
    late: list[float] = []
    confirmed = _Confirmations(once, late)
    scheduler = OnceScheduler(app)
    try:
        began, took_over, settled = time.monotonic(), 0.0, False
        while not took_over or time.monotonic() - began < took_over + SETTLE + seconds:
            rest = scheduler.tick()
            if not took_over and scheduler._reign is not None:  # noqa: SLF001
                took_over = time.monotonic() - began
            if took_over and not settled and time.monotonic() - began > took_over + SETTLE:
                settled = True
                late.clear()
            time.sleep(rest)
    finally:
        scheduler.close()
        confirmed.stop()
    late.sort()
    store_name = "outbox" if confirmed.by_outbox else "claim, send, mark"
    return {
        "ledger": ledger,
        "goes_out_by": store_name,
        "entries": entries,
        "ticks": len(late),
        "ticks_per_s": len(late) / seconds,
        "first_pass_s": took_over,
        "late_p50_ms": statistics.median(late) * 1000,
        "late_p99_ms": late[int(len(late) * 0.99)] * 1000,
        "late_max_ms": late[-1] * 1000,
    }


class _Confirmations:
    """Notes how late each tick is when the broker has confirmed its message, whichever way it went out."""

    def __init__(self, once: EffectOnce, late: list[float]) -> None:
        self._plain = reign.Reign._send  # noqa: SLF001 - the instant of the confirmation
        self._dispatcher = once.dispatcher
        self.by_outbox = False
        plain, dispatch = self._plain, self._dispatcher.dispatch

        def send(of: Any, planned: Any, tick: Any) -> None:
            plain(of, planned, tick)
            late.append(time.time() - tick.instant / 1e6)

        def dispatched(stored: Any) -> None:
            dispatch(stored)
            now = time.time()
            for each in stored:
                self.by_outbox = True
                instant = datetime.fromisoformat(json.loads(each.message.headers)["effectonce_tick"])
                late.append(now - instant.timestamp())

        reign.Reign._send = send  # type: ignore[method-assign]  # noqa: SLF001
        self._dispatcher.dispatch = dispatched  # type: ignore[method-assign]

    def stop(self) -> None:
        reign.Reign._send = self._plain  # type: ignore[method-assign]  # noqa: SLF001
