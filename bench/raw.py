"""The store without Celery: a guarded transaction beside an unguarded one, and duplicates of finished work.

On each store a *twin* does with the bare driver what the ledger does through this library: the floor. On PostgreSQL
the twins are: the work alone (``begin``, one update, ``commit``), and the same with the ledger's own claim in it, as
four round trips and as three (psycopg sends ``begin`` and the claim together). Each client is a process of its own.
"""

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from bench.report import interleaved, progress, ratio, spread, write
from bench.twins import DUPLICATES, TRANSACTIONS, prepare
from tests.services import Fleet

STORES = ("postgresql", "mariadb", "sqlite", "redis")


def main(words: list[str]) -> None:
    """Measure, print a line for each comparison; writes bench/results/raw.json."""
    options = _options(words)
    began, fleet = os.getloadavg(), Fleet()
    try:
        with tempfile.TemporaryDirectory() as folder:
            rows = [row for store in options.stores for row in _store(_url(fleet, store, folder), store, options)]
    finally:
        fleet.close()
    progress("")
    for row in rows:
        print(
            f"{row['store']:<11} {row['clients']} clients  {row['what']:<44} "
            f"{row['ratio']['median']:6.2f} ({row['ratio']['least']:.2f}-{row['ratio']['most']:.2f}) of {row['to']}, "
            f"{row['per_second']['median']:.0f}/s, {row['per_processor_second']:.0f} for a client's second of processor"
        )
    write("raw", rows, began=began, asked=vars(options))


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench raw", description=__doc__)
    parser.add_argument("--stores", nargs="+", default=list(STORES), choices=STORES)
    parser.add_argument("--clients", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of A B B A")
    return parser.parse_args(words)


def _url(fleet: Fleet, store: str, folder: str) -> str:
    return f"sqlite:///{folder}/raw.sqlite" if store == "sqlite" else str(getattr(fleet, store)().fresh_url())


def _store(url: str, store: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    prepare(url)
    rows = []
    for clients in options.clients:
        for kind, sides in (("transaction", TRANSACTIONS[store]), ("duplicate", DUPLICATES[store])):
            with closing(Crowd(url, clients, sides)) as crowd:
                measures = {name: partial(crowd.rate, name, options.seconds) for name in sides}
                taken = interleaved(measures, rounds=options.rounds, say=f"{store}, {clients} clients, {kind}")
            floor = next(iter(sides))
            rows += [
                {
                    "store": store,
                    "clients": clients,
                    "kind": kind,
                    "what": name,
                    "to": floor,
                    "ratio": ratio(taken, of=name, to=floor),
                    "per_second": spread(taken[name]),
                    "per_processor_second": crowd.done[name] / crowd.spent[name],
                }
                for name in sides
            ]
    return rows


class Crowd:
    """Clients, each a process that waits for the order to do one thing for some seconds."""

    def __init__(self, url: str, clients: int, sides: dict[str, Callable[[str], Callable[[], None]]]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipes = []
        self._processes = []
        self.done = dict.fromkeys(sides, 0)
        self.spent = dict.fromkeys(sides, 0.0)
        for _ in range(clients):
            ours, theirs = context.Pipe()
            process = context.Process(target=_client, args=(url, sides, theirs), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)

    def rate(self, name: str, seconds: float) -> float:
        """How often a second all of them together did it; *done* and *spent* add up, for each second of a processor."""
        began = time.time() + 0.05
        for pipe in self._pipes:
            pipe.send((name, began, seconds))
        told = [pipe.recv() for pipe in self._pipes]
        done = sum(count for count, _ in told)
        self.done[name] += done
        self.spent[name] += sum(spent for _, spent in told)
        return done / seconds

    def close(self) -> None:
        """End the processes."""
        for pipe in self._pipes:
            pipe.send(None)
        for process in self._processes:
            process.join(20)


def _client(url: str, sides: dict[str, Callable[[str], Callable[[], None]]], pipe: Any) -> None:
    acts = {name: make(url) for name, make in sides.items()}
    for act in acts.values():
        act()
    while (order := pipe.recv()) is not None:
        name, began, seconds = order
        act, count = acts[name], 0
        time.sleep(max(began - time.time(), 0))
        end, used = began + seconds, time.process_time()
        while time.time() < end:
            act()
            count += 1
        pipe.send((count, time.process_time() - used))
    pipe.close()
