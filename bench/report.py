"""What every benchmark writes: its rows, the machine with its load, the versions, and what it was asked for."""

import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
PACKAGES = ("effectonce", "celery", "kombu", "redis", "sqlalchemy", "psycopg", "pymysql")


def write(name: str, rows: Sequence[Mapping[str, Any]], *, began: Sequence[float], **facts: Any) -> None:
    """Write ``bench/results/NAME.json``; *began*: the load average before anything was started."""
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(began),
        "versions": versions(PACKAGES),
        **facts,
        "rows": list(rows),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(report, indent=2) + "\n")


def machine(began: Sequence[float]) -> dict[str, Any]:
    """The machine, and how busy it was: a load above the number of cores means that others were at work."""
    return {
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_before": [round(each, 2) for each in began],
        "load_after": [round(each, 2) for each in os.getloadavg()],
    }


def versions(names: Iterable[str]) -> dict[str, str]:
    """The versions of what is installed here."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and most of some rounds."""
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def quantile(values: Iterable[float], share: float) -> float:
    """The value that *share* of them do not pass."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def interleaved(sides: Mapping[str, Callable[[], float]], *, rounds: int, say: str = "") -> dict[str, list[float]]:
    """Measure each side in the order A B ... B A, *rounds* times; what disturbs the machine disturbs all alike."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for nth in range(rounds):
        for name in [*sides, *reversed(list(sides))]:
            taken[name].append(sides[name]())
        progress(f"{say} round {nth + 1} of {rounds}")
    return taken


def ratio(taken: Mapping[str, Sequence[float]], *, of: str, to: str) -> dict[str, float]:
    """How *of* stands to *to*, round by round, where each side was measured twice a round."""
    pairs = [(sum(taken[of][at : at + 2]) / sum(taken[to][at : at + 2])) for at in range(0, len(taken[of]), 2)]
    return spread(pairs)


def progress(words: str) -> None:
    """Say how far it is, on a terminal in one line; a pipe gets nothing."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
