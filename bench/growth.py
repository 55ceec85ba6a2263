"""How the cost of a claim grows: with the ledger, with the clients, with keys that meet, and while the ledger is away.

Entries are filled in by the database itself. A claim is the guard's whole transaction with no work in it, on
PostgreSQL, at a fixed rate for each client, so latency counts from the intended instant. The small ledger and the large
ones take turns, A B C C B A. The storm is 1,000 duplicates of one key at workers at once, while the first still runs:
what the store is asked and how many copies go back to the broker. The outage stops the server under load.
"""

import argparse
import multiprocessing
import os
import secrets
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from bench.report import progress, quantile, spread, write
from bench.storm import storm
from bench.twins import claim, opened
from effectonce.domain.claims import Granted, Outcome, State
from effectonce.errors import LedgerUnavailable
from tests.services import Fleet

if TYPE_CHECKING:
    from collections.abc import Callable

FILL = """
insert into effectonce_entries (fence, since, lease_until, lease_ms, keep_until, keep_us, state, flags, deaths,
  attempts, retries, digest, identity, attempt, fingerprint, task_id, key)
select 1800000000000000 + n, 1800000000000000, 1800000060000000, 60000, 9000000000000000, null, 2, 0, 0, 1, 0,
  decode(md5(n::text), 'hex'), decode(md5('i' || n), 'hex'), substring(decode(md5('a' || n), 'hex') for 8),
  decode(md5('f' || n), 'hex'), gen_random_uuid()::text, 'charge:' || n
from generate_series(:first, :last) n
"""
BATCH = 500_000
DONE = Outcome(state=State.COMPLETED, result=None, keep=86400.0)


def main(words: list[str]) -> None:
    """Measure, print a line for each; writes bench/results/growth.json."""
    options = _options(words)
    began, fleet = os.getloadavg(), Fleet()
    measures: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "size": lambda: _sizes(fleet, options),
        "clients": lambda: _crowds(fleet, options),
        "collide": lambda: _collisions(fleet, options),
        "storm": lambda: [storm(fleet, options.duplicates)],
        "outage": lambda: [_outage(fleet, options)],
    }
    rows: list[dict[str, Any]] = []
    try:
        for name in options.parts:
            for row in measures[name]():
                progress("")
                print(", ".join(f"{word} {_shown(value)}" for word, value in row.items()), flush=True)
                rows.append(row)
    finally:
        fleet.close()
    write("growth", rows, began=began, asked=vars(options))


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench growth", description=__doc__)
    parts = ("size", "clients", "collide", "storm", "outage")
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=parts)
    parser.add_argument("--sizes", nargs="+", type=int, default=[0, 1_000_000, 5_000_000, 10_000_000])
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 2, 4, 8, 16, 32, 64])
    parser.add_argument("--rate", type=float, default=50.0, help="claims a second in the comparison of sizes")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of A B B A")
    parser.add_argument("--duplicates", type=int, default=1000, help="of one key, at once")
    parser.add_argument("--away", type=float, default=60.0, help="seconds without a ledger")
    return parser.parse_args(words)


def _shown(value: object) -> object:
    return {name: round(each, 2) for name, each in value.items()} if isinstance(value, dict) else value


def _sizes(fleet: Fleet, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A database for each size, so that they can take turns; a size is filled from nothing."""
    urls = {size: str(fleet.postgresql().fresh_url()) for size in options.sizes}
    bytes_of = {size: _fill(url, size) for size, url in urls.items()}
    late: dict[int, list[float]] = {size: [] for size in urls}
    for nth in range(options.rounds):
        for size in [*urls, *reversed(urls)]:
            progress(f"claims beside {size} entries, round {nth + 1} of {options.rounds}")
            late[size] += _paced(urls[size], options.rate, options.seconds)
    first = options.sizes[0]
    rows = []
    for size in urls:
        row: dict[str, Any] = {"what": "size", "entries": size, "bytes_an_entry": bytes_of[size]}
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            row[f"{name}_ms"] = round(quantile(late[size], share) * 1000, 3)
            row[f"{name}_of_first"] = round(quantile(late[size], share) / quantile(late[first], share), 3)
        rows.append(row)
    return rows


def _fill(url: str, size: int) -> int | None:
    ledger = opened(url)
    ledger.create_schema()
    for first in range(1, size + 1, BATCH):
        with ledger.source.engine.begin() as connection:
            connection.execute(sa.text(FILL), {"first": first, "last": min(first + BATCH - 1, size)})
        progress(f"{min(first + BATCH - 1, size)} of {size} entries")
    with ledger.source.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("vacuum analyze effectonce_entries"))
        total = connection.execute(sa.text("select pg_total_relation_size('effectonce_entries')")).scalar() or 0
        connection.execute(sa.text("checkpoint"))
    ledger.close()
    return round(int(total) / size) if size else None


def _take(ledger: Any, digest: bytes | None = None) -> bool:
    """The guard's transaction without work; whether it was granted."""
    mine = claim(digest)
    with ledger.work(mine, granted=None, allow_escape=False, keep=mine.keep) as work:
        if not isinstance(work.enter(), Granted):
            return False
        work.finish(DONE)
        work.commit()
    return True


def _paced(url: str, rate: float, seconds: float) -> list[float]:
    ledger, late = opened(url), []
    for _ in range(20):
        _take(ledger)
    began = time.perf_counter() + 0.01
    for at in range(int(rate * seconds)):
        due = began + at / rate
        time.sleep(max(due - time.perf_counter(), 0))
        _take(ledger)
        late.append(time.perf_counter() - due)
    ledger.close()
    return late


def _crowds(fleet: Fleet, options: argparse.Namespace) -> list[dict[str, Any]]:
    """As fast as they can, each client in a process: throughput and the time of one claim."""
    url = str(fleet.postgresql().fresh_url())
    _fill(url, 0)
    rows = []
    for clients in options.clients:
        told = _in_processes(clients, url, options.seconds / 2, "new")
        times = [each for taken, _ in told for each in taken]
        rows.append(
            {
                "what": "clients",
                "clients": clients,
                "per_s": round(len(times) / (options.seconds / 2), 1),
                **{f"p{share * 100:.0f}_ms": round(quantile(times, share) * 1000, 2) for share in (0.5, 0.99)},
            }
        )
    return rows


def _collisions(fleet: Fleet, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Eight clients that all want the same key at the same instants: one is granted, and nobody waits for it."""
    url = str(fleet.postgresql().fresh_url())
    _fill(url, 0)
    told = _in_processes(8, url, options.seconds / 2, "same")
    times = [each for taken, _ in told for each in taken]
    granted = sum(number for _, number in told)
    return [
        {
            "what": "keys that collide",
            "clients": 8,
            "calls": len(times),
            "granted": granted,
            "keys": int(options.seconds / 2 * PACE),
            **{f"p{share * 100:.0f}_ms": round(quantile(times, share) * 1000, 2) for share in (0.5, 0.99)},
        }
    ]


PACE = 20
"""Instants a second at which all clients want the same new key."""


def _in_processes(clients: int, url: str, seconds: float, keys: str) -> list[tuple[list[float], int]]:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    seed, began = secrets.token_hex(4) if keys == "same" else None, time.time() + 1.0 + clients / 20
    crowd = [context.Process(target=_client, args=(url, seed, began, began + seconds, answers)) for _ in range(clients)]
    for each in crowd:
        each.start()
    told = [answers.get() for _ in crowd]
    for each in crowd:
        each.join()
    return told


def _client(url: str, seed: str | None, began: float, end: float, answers: Any) -> None:
    ledger, times, granted, at = opened(url), [], 0, 0
    _take(ledger)
    time.sleep(max(began - time.time(), 0))
    while time.time() < end:
        digest = None
        if seed is not None:
            time.sleep(max(began + at / PACE - time.time(), 0))
            digest, at = f"{seed}{at:08d}".encode(), at + 1
        start = time.perf_counter()
        granted += _take(ledger, digest)
        times.append(time.perf_counter() - start)
    answers.put((times, granted))
    ledger.close()


def _outage(fleet: Fleet, options: argparse.Namespace) -> dict[str, Any]:
    """Stop the ledger's server under load: each claim is told in time that it is away, and it goes on when it is back.

    No claim is ever granted by a ledger that does not answer.
    """
    server: Any = fleet.postgresql()
    url = str(server.fresh_url())
    _fill(url, 0)
    ledger, stop = opened(url), threading.Event()
    granted: list[float] = []
    refused: list[tuple[float, float]] = []

    def load() -> None:
        while not stop.is_set():
            start = time.monotonic()
            try:
                _take(ledger)
                granted.append(start)
            except LedgerUnavailable:
                refused.append((start, time.monotonic() - start))
                stop.wait(0.1)

    clients = [threading.Thread(target=load) for _ in range(4)]
    for client in clients:
        client.start()
    time.sleep(3)
    gone = time.monotonic()
    server.kill()
    stop.wait(options.away)
    server.start()
    back = time.monotonic()
    with suppress(TimeoutError):
        while not any(each > back for each in granted) and time.monotonic() < back + 30:
            stop.wait(0.02)
    first = next((each - back for each in granted if each > back), None)
    stop.wait(2)
    stop.set()
    for client in clients:
        client.join()
    ledger.close()
    return {
        "what": "ledger away",
        "seconds": round(back - gone, 1),
        "refused": len(refused),
        "granted_while_away": sum(gone + 1 < each < back - 1 for each in granted),
        "told_ms": {name: each * 1000 for name, each in spread([lasted for _, lasted in refused] or [0.0]).items()},
        "first_after_s": None if first is None else round(first, 2),
    }
