"""What one effect costs in things that hardly depend on who else uses the machine.

Python calls and processor time of the guard itself (a guarded task against the same statements without the guard);
statements and round trips as libpq sees them; bytes of write-ahead log and of rows; the time of the import; the memory
of a claim that is held. The counts are held by `tests/integration/sql/test_budget.py` and `test_costs.py`.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from bench.report import interleaved, progress, spread, write
from tests.integration.sql.budget import Budget
from tests.integration.sql.wire import tapped
from tests.services import Fleet

IMPORTS = {
    "import effectonce": "import effectonce",
    "from effectonce import EffectOnce": "from effectonce import EffectOnce, Leased, Transactional",
}


def main(words: list[str]) -> None:
    """Measure all of it, print a line for each; writes bench/results/costs.json."""
    options = _options(words)
    began, fleet = os.getloadavg(), Fleet()
    try:
        with tempfile.TemporaryDirectory() as folder:
            urls = {"sqlite": f"sqlite:///{folder}/costs.sqlite", "postgresql": str(fleet.postgresql().fresh_url())}
            rows = [row for name, url in urls.items() for row in _guard(name, url, options)]
        rows += _on_the_wire(str(fleet.postgresql().fresh_url()))
        rows += _bytes(str(fleet.postgresql().fresh_url()), options.effects)
        rows += [_import(name, words, options.rounds) for name, words in IMPORTS.items()]
    finally:
        fleet.close()
    progress("")
    for row in rows:
        print(", ".join(f"{name} {_shown(value)}" for name, value in row.items()))
    write("costs", rows, began=began, asked=vars(options))


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench costs", description=__doc__)
    parser.add_argument("--messages", type=int, default=400, help="messages in each measurement of processor time")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of A B B A")
    parser.add_argument("--effects", type=int, default=3000, help="effects whose bytes are counted")
    return parser.parse_args(words)


def _shown(value: object) -> object:
    return {name: round(each, 2) for name, each in value.items()} if isinstance(value, dict) else value


def _guard(ledger: str, url: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The guard's own Python: what is left when the same statements are taken away."""
    budget = Budget(url)

    def side(name: str) -> Callable[[], float]:
        return lambda: budget.processor_seconds(name, options.messages) * 1e6

    names = ("guarded", "twin", "bare", "leased", "empty")
    taken = interleaved({name: side(name) for name in names}, rounds=options.rounds, say=f"processor time on {ledger}")
    own = [guarded - twin for guarded, twin in zip(taken["guarded"], taken["twin"], strict=True)]
    row = {
        "what": "guard's own Python, Transactional",
        "ledger": ledger,
        "calls": budget.calls("guarded") - budget.calls("twin"),
        "us": spread(own),
        "us_statements": spread(taken["twin"]),
        "us_bare": spread(taken["bare"]),
    }
    leased = {
        "what": "guard's own Python and two short transactions, Leased",
        "ledger": ledger,
        "calls": budget.calls("leased") - budget.calls("empty"),
        "us": spread([guarded - bare for guarded, bare in zip(taken["leased"], taken["empty"], strict=True)]),
    }
    budget.close()
    return [row, leased]


def _on_the_wire(url: str) -> list[dict[str, Any]]:
    budget, rows = Budget(url), []
    for name, number in (("bare", None), ("guarded", None), ("guarded", 1), ("guarded", 1), ("leased", None)):
        with tapped(budget.engine) as wire:
            budget.run(name, number)
        what = "duplicate of finished work" if number and wire.verbs[-1] == "rollback" else name
        rows.append({"what": f"on the wire: {what}", "statements": wire.verbs, "round_trips": wire.round_trips})
    budget.close()
    return rows


def _bytes(url: str, effects: int) -> list[dict[str, Any]]:
    """Bytes of log for one effect in steady state, after the pages' first images; bytes of an entry with its index."""
    budget, rows = Budget(url), []
    for name in ("bare", "guarded"):
        for _ in range(effects):
            budget.run(name)
        with budget.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            before = connection.execute(sa.text("select pg_current_wal_lsn()")).scalar()
            for _ in range(effects):
                budget.run(name)
            told = sa.text("select pg_wal_lsn_diff(pg_current_wal_lsn(), cast(:before as pg_lsn))")
            log = float(connection.execute(told, {"before": str(before)}).scalar() or 0)
        rows.append({"what": f"log of one effect: {name}", "bytes": round(log / effects)})
        progress(f"log of {effects} effects: {name}")
    with budget.engine.begin() as connection:
        size = sa.text("select pg_total_relation_size('effectonce_entries'), count(*) from effectonce_entries")
        total, number = connection.execute(size).one()
    rows.append({"what": "one entry with its indices", "bytes": round(total / number)})
    budget.close()
    return rows


def _import(name: str, words: str, rounds: int) -> dict[str, Any]:
    """Processor time of an import in a new process that has what a Celery worker has, from compiled files."""
    worker = "app.amqp, celery.app.trace, celery.app.control, celery.canvas, celery.beat, celery.worker.control"
    code = (
        f"import time, celery.{worker}\nbegan = time.process_time()\n{words}\n"
        "print((time.process_time() - began) * 1000)"
    )
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        taken = [
            float(subprocess.run([sys.executable, "-c", code], env=env, check=True, capture_output=True).stdout)
            for _ in range(rounds + 1)
        ]
    return {"what": name, "ms": spread(taken[1:])}
