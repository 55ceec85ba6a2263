"""What pruning costs those who claim, side by side: claims at a fixed rate, with and without a pruner at work.

A ledger on PostgreSQL is filled with a million entries, half of them past their life. One process claims and completes
new effects in an open loop; latency counts from the intended instant. Windows without and with a pruner (a process of
its own) take turns, A B B A, so that a noisy machine disturbs both alike. Aim: 1,000 entries a second or more, and a
p99 of the claim that is less than a quarter higher.
"""

import argparse
import json
import multiprocessing
import os
import platform
import secrets
import time
from importlib.metadata import version
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import text

from effectonce.domain.claims import Claim, Granted, Outcome, State
from effectonce.runtime.pruner import Pruner
from effectonce.stores.sql.ledger import SqlLedger
from tests.services import Fleet

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

PACKAGES = ("effectonce", "sqlalchemy", "psycopg")


def main(words: list[str]) -> None:
    """Fill, measure, print a line; writes bench/results/pruning.json."""
    options = _options(words)
    fleet = Fleet()
    try:
        url = fleet.postgresql().fresh_url()
        row = _measure(url, options)
    finally:
        fleet.close()
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    versions = {name: version(name) for name in PACKAGES}
    report = {"machine": machine, "versions": versions, "rows": [row]}
    Path("bench/results/pruning.json").write_text(json.dumps(report, indent=2) + "\n")
    print(
        f"{row['entries']} entries, {row['bytes_an_entry']:.0f} bytes each with index: pruned "
        f"{row['pruned_per_s']:.0f}/s; claim p99 {row['quiet_p99_ms']:.2f} ms quiet, "
        f"{row['pruning_p99_ms']:.2f} ms beside it (x{row['ratio']:.2f}); "
        f"p50 {row['quiet_p50_ms']:.2f} and {row['pruning_p50_ms']:.2f} ms"
    )


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench pruning", description=__doc__)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=100.0, help="claims a second")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each window")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of A B B A")
    return parser.parse_args(words)


def _measure(url: str, options: argparse.Namespace) -> dict[str, Any]:
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    size = _fill(ledger, options.entries)
    _window(ledger, rate=options.rate, seconds=3.0)
    late: dict[bool, list[float]] = {False: [], True: []}
    removed, lasted = 0, 0.0
    for _ in range(options.rounds):
        for prunes in (False, True, True, False):
            seen, gone, took = _side(ledger, url, options, prunes=prunes)
            late[prunes] += seen
            removed, lasted = removed + gone, lasted + took
    ledger.close()
    quiet, beside = (_quantile(late[prunes], 0.99) for prunes in (False, True))
    return {
        "entries": options.entries,
        "bytes_an_entry": size,
        "claims_per_s": options.rate,
        "pruned": removed,
        "pruned_per_s": removed / lasted,
        "quiet_p50_ms": _quantile(late[False], 0.5) * 1000,
        "pruning_p50_ms": _quantile(late[True], 0.5) * 1000,
        "quiet_p99_ms": quiet * 1000,
        "pruning_p99_ms": beside * 1000,
        "ratio": beside / quiet,
    }


def _side(ledger: SqlLedger, url: str, options: argparse.Namespace, *, prunes: bool) -> tuple[list[float], int, float]:
    """One window; answers the latencies, and how much was pruned in which time."""
    if not prunes:
        return _window(ledger, rate=options.rate, seconds=options.seconds), 0, 0.0
    context = multiprocessing.get_context("spawn")
    started, stop, count = context.Event(), context.Event(), context.Value("q", 0)
    process = context.Process(target=_prune, args=(url, started, stop, count))
    process.start()
    started.wait(60)
    began, before = time.monotonic(), count.value
    seen = _window(ledger, rate=options.rate, seconds=options.seconds)
    gone, took = count.value - before, time.monotonic() - began
    stop.set()
    process.join(60)
    return seen, gone, took


class _Stopped(Exception):
    pass


def _prune(url: str, started: Event, stop: Event, count: "Synchronized[int]") -> None:
    """Prune until told to stop, as a worker does."""
    ledger = SqlLedger.open(url)

    def progress(_looked: int, removed: int, _share: float) -> None:
        count.value = removed
        started.set()
        if stop.is_set():
            raise _Stopped

    try:
        Pruner(ledger).prune(progress)
    except _Stopped:
        ledger.close()


def _window(ledger: SqlLedger, *, rate: float, seconds: float) -> list[float]:
    """Claim and complete at a fixed rate; answers the latency of each claim from its intended instant."""
    began, seen = time.perf_counter() + 0.01, []
    for at in range(int(rate * seconds)):
        due = began + at / rate
        time.sleep(max(due - time.perf_counter(), 0))
        granted = ledger.claim(_claim())
        seen.append(time.perf_counter() - due)
        assert isinstance(granted, Granted)  # noqa: S101 - a new effect is granted
        ledger.complete(granted, Outcome(state=State.COMPLETED, result=b"done", keep=86400.0))
    return seen


def _claim() -> Claim:
    return Claim(
        digest=secrets.token_bytes(16),
        key=f"charge:{secrets.token_hex(6)}",
        attempt=secrets.token_bytes(8),
        identity=secrets.token_bytes(16),
        task_id=secrets.token_hex(16),
        fingerprint=secrets.token_bytes(16),
        lease=60.0,
        max_takeovers=5,
        keep=86400.0,
    )


def _fill(ledger: SqlLedger, entries: int) -> float:
    """Entries as a shop has them, every other one past its life; answers the bytes of one with its index.

    The primary key is built after them, which is many times faster, and leaves its pages fuller than a shop's are.
    """
    key = "effectonce_entries_pkey"
    with ledger.source.engine.begin() as connection:
        connection.execute(text("set local maintenance_work_mem = '256MB'"))
        connection.execute(text(f"alter table effectonce_entries drop constraint {key}"))
        connection.execute(
            text(
                "insert into effectonce_entries (fence, since, lease_until, lease_ms, keep_until, keep_us, state, "
                "flags, deaths, attempts, retries, digest, identity, attempt, fingerprint, task_id, key) "
                "select 1800000000000000 + n, 1800000000000000, 1800000060000000, 60000, "
                "case when n % 2 = 0 then 1 else 9000000000000000 end, null, 2, 0, 0, 1, 0, "
                "decode(md5(n::text), 'hex'), decode(md5('i' || n), 'hex'), "
                "substring(decode(md5('a' || n), 'hex') for 8), "
                "decode(md5('f' || n), 'hex'), gen_random_uuid()::text, 'charge:' || n "
                "from generate_series(1, :entries) n"
            ),
            {"entries": entries},
        )
        connection.execute(text(f"alter table effectonce_entries add constraint {key} primary key (digest)"))
    with ledger.source.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("vacuum analyze effectonce_entries"))
        size = connection.execute(text("select pg_total_relation_size('effectonce_entries')")).scalar()
    return float(size or 0) / entries


def _quantile(seen: list[float], share: float) -> float:
    return sorted(seen)[int(len(seen) * share)]
