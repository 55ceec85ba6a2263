"""Run benchmarks by name: ``python -m bench [NAME ...] [-- OPTIONS]``."""

import importlib
import signal
import sys
from pathlib import Path

NAMES = ["costs", "raw", "rivals", "growth", "mapping", "overhead", "outbox", "pruning", "beat", "failover"]
NAMES += ["dashboard", "plan", "plots"]
"""In the order in which all are run: the last ones read what the others wrote."""


def main() -> None:
    """Run the named benchmarks, or all of them; what follows ``--`` goes to each."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what a benchmark has started ends with it
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    names, options = words[:cut] or list(NAMES), words[cut + 1 :]
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are: {', '.join(NAMES)}")
    Path("bench/results").mkdir(parents=True, exist_ok=True)
    for name in names:
        importlib.import_module(f"bench.{name}").main(options)


if __name__ == "__main__":
    main()
