"""How long nothing is sent when something happens to beat: kill -9, SIGSTOP, a rolling deploy, a restart of a server.

Real beats, a real ledger and a real broker, as in the tests of the judge, which also says whether a tick was missed or
sent under two ids meanwhile. A gap is the time from the blow to the first tick that goes out after another beat leads;
it holds up to one interval of the schedule.
"""

import argparse
import json
import os
import platform
import statistics
from pathlib import Path
from typing import Any

from tests.integration.beat.harness import Place
from tests.integration.beat.judge import Stand, judge
from tests.services import Fleet

EVERY = 0.25


def main(words: list[str]) -> None:
    """Measure each blow some times on each ledger; write the results and print them."""
    parser = argparse.ArgumentParser(prog="bench failover")
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--lease", type=float, default=10.0)
    parser.add_argument("--ledgers", nargs="+", default=["postgresql", "mariadb", "redis"])
    asked = parser.parse_args(words)
    fleet = Fleet()
    try:
        results = [_measure(fleet, ledger, lease=asked.lease, times=asked.times) for ledger in asked.ledgers]
    finally:
        fleet.close()
    machine = {"cpus": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
    Path("bench/results/failover.json").write_text(json.dumps({"machine": machine, "results": results}, indent=2))
    print(json.dumps(results, indent=2))


def _measure(fleet: Fleet, ledger: str, *, lease: float, times: int) -> dict[str, Any]:
    schedule = {"report": {"schedule": EVERY}}
    with Place(fleet, ledger, schedule, BEAT_MISSED="all", BEAT_LEASE=str(lease)) as place:
        stand = Stand.of(place)
        for _ in range(times):
            for blow in stand.blows.values():
                blow()
        stand.settle("report")
        verdict = judge(place, "report", EVERY)
    return {
        "ledger": ledger,
        "lease_s": lease,
        "ticks": len(verdict.instants),
        "missed": len(verdict.missing),
        "under_two_ids": len(verdict.under_two_ids),
        "sent_again": verdict.repeated,
        "gaps_s": {
            name: {"median": statistics.median(gaps), "longest": max(gaps), "times": len(gaps)}
            for name, gaps in stand.gaps.items()
        },
    }
