"""What a mapping of ledgers gives: the same effects on one PostgreSQL server, and by scope on two.

Clients are processes that call guarded tasks of two scopes, turn by turn, through the whole guard; the effects of the
first scope go to the first server, those of the second to the same one or to another. A B B A. Servers and clients
share this machine's cores, so this shows what the mapping costs and that both servers work; not how far it scales.
"""

import argparse
import multiprocessing
import os
import secrets
import time
from functools import partial
from typing import Any

import sqlalchemy as sa
from celery import Celery

from bench.report import interleaved, progress, ratio, spread, write
from bench.twins import opened
from effectonce import EffectOnce, Transactional
from tests.services import Fleet


def main(words: list[str]) -> None:
    """Measure, print a line; writes bench/results/mapping.json."""
    options = _options(words)
    began, fleet = os.getloadavg(), Fleet()
    try:
        one, two = str(fleet.postgresql().fresh_url()), str(fleet.second_postgresql().fresh_url())
        for url in (one, two):
            ledger = opened(url)
            ledger.create_schema()
            ledger.close()
        sides = {
            "one server": partial(_rate, {"default": one}, options),
            "two servers": partial(_rate, {"default": one, "refunds": two}, options),
        }
        taken = interleaved(sides, rounds=options.rounds, say="mapping:")
        entries = {"first": _entries(one), "second": _entries(two)}
    finally:
        fleet.close()
    gain = ratio(taken, of="two servers", to="one server")
    progress("")
    print(f"two servers {gain['median']:.2f} ({gain['least']:.2f}-{gain['most']:.2f}) of one; entries {entries}")
    row = {"what": "two servers by scope", "ratio": gain, "entries": entries}
    write("mapping", [row | {name: spread(rates) for name, rates in taken.items()}], began=began, asked=vars(options))


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench mapping", description=__doc__)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of A B B A")
    return parser.parse_args(words)


def _rate(ledgers: dict[str, str], options: argparse.Namespace) -> float:
    context = multiprocessing.get_context("fork")
    answers, began = context.SimpleQueue(), time.time() + 2.0
    crowd = [
        context.Process(target=_client, args=(ledgers, began, options.seconds, answers)) for _ in range(options.clients)
    ]
    for each in crowd:
        each.start()
    done = sum(answers.get() for _ in crowd)
    for each in crowd:
        each.join()
    return done / options.seconds


def _client(ledgers: dict[str, str], began: float, seconds: float, answers: Any) -> None:
    app = Celery("mapping", broker="memory://", set_as_current=False)
    EffectOnce(app, ledger=ledgers)

    @app.task(name="charge", shared=False, once=Transactional("{key}", scope="charges"))
    def charge(key: str) -> None:
        """An effect of the first scope."""

    @app.task(name="refund", shared=False, once=Transactional("{key}", scope="refunds"))
    def refund(key: str) -> None:
        """An effect of the second one."""

    tasks, count = (charge, refund), 0
    for task in tasks:
        task(secrets.token_hex(8))
    time.sleep(max(began - time.time(), 0))
    while time.time() < began + seconds:
        tasks[count % 2](secrets.token_hex(8))
        count += 1
    answers.put(count)


def _entries(url: str) -> int:
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        number = int(connection.execute(sa.text("select count(*) from effectonce_entries")).scalar() or 0)
    engine.dispose()
    return number
