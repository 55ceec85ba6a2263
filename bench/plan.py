"""What many effects a second need, computed from what was measured here, and a simulation of how evenly they spread.

Reads the results of `costs` and `raw`. One server's rate is what 8 clients got of the guarded transaction on this
machine, servers and clients sharing it; a plan for another machine begins with these two benchmarks there. The
simulation deals effects to ledgers by scope, with scopes as unequal as Zipf's law, and says how far the busiest ledger
is above the mean: that is what the number of servers is multiplied by.
"""

import argparse
import json
import math
import os
import random
from collections.abc import Mapping, Sequence
from typing import Any

from bench.report import RESULTS, progress, write

DAY = 86_400
KEPT_DAYS = 7
"""How long an entry is kept unless a policy says otherwise."""


def main(words: list[str]) -> None:
    """Compute, print a line for each rate; writes bench/results/plan.json."""
    options = _options(words)
    began = os.getloadavg()
    costs, raw = (json.loads((RESULTS / f"{name}.json").read_text())["rows"] for name in ("costs", "raw"))
    guarded = _found(raw, store="postgresql", clients=8, what="guarded Transactional")
    leased = _found(raw, store="redis", clients=8, kind="transaction", what="Leased: claim and settlement")
    measured = {
        "effects_per_s": guarded["per_second"]["median"],
        "leased_per_s": leased["per_second"]["median"],
        "log_bytes": _found(costs, what="log of one effect: guarded")["bytes"],
        "bare_log_bytes": _found(costs, what="log of one effect: bare")["bytes"],
        "entry_bytes": _found(costs, what="one entry with its indices")["bytes"],
    }
    rows = [plan(rate, measured) for rate in options.rates]
    for row in rows:
        print(", ".join(f"{name} {value:,.0f}" for name, value in row.items()))
    spreads = [
        {"scopes": scopes, "ledgers": ledgers, "busiest_of_mean": imbalance(scopes, ledgers, options.seed)}
        for scopes in options.scopes
        for ledgers in options.ledgers
    ]
    for row in spreads:
        print(", ".join(f"{name} {value:,.2f}" for name, value in row.items()))
    progress("")
    write("plan", rows, began=began, asked=vars(options), measured=measured, spreads=spreads)


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench plan", description=__doc__)
    parser.add_argument("--rates", nargs="+", type=int, default=[10_000, 1_000_000], help="effects a second")
    parser.add_argument("--scopes", nargs="+", type=int, default=[10, 100, 10_000])
    parser.add_argument("--ledgers", nargs="+", type=int, default=[2, 8, 32])
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(words)


def _found(rows: Sequence[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    return next(row for row in rows if all(row.get(name) == value for name, value in wanted.items()))


def plan(rate: int, measured: Mapping[str, float]) -> dict[str, float]:
    """Servers, log and room for *rate* effects a second; each server as the measured one."""
    entries = rate * DAY * KEPT_DAYS
    return {
        "effects_per_s": rate,
        "postgresql_servers": math.ceil(rate / measured["effects_per_s"]),
        "redis_servers": math.ceil(rate / measured["leased_per_s"]),
        "log_mb_per_s": rate * measured["log_bytes"] / 1e6,
        "log_mb_per_s_without": rate * measured["bare_log_bytes"] / 1e6,
        "entries_kept": entries,
        "room_gb": entries * measured["entry_bytes"] / 1e9,
        "pruned_per_s": rate,
    }


def imbalance(scopes: int, ledgers: int, seed: int) -> float:
    """How far the busiest ledger is above the mean, over 200 deals of scopes whose loads follow Zipf's law."""
    weights = [1 / nth for nth in range(1, scopes + 1)]
    chance, total = random.Random(seed), sum(weights)  # noqa: S311 - a simulation
    worst = 0.0
    for _ in range(200):
        loads = [0.0] * ledgers
        for weight in weights:
            loads[chance.randrange(ledgers)] += weight
        worst += max(loads) / (total / ledgers)
    return worst / 200
