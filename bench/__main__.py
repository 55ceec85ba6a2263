"""Run benchmarks by name: ``python -m bench [NAME ...] [-- OPTIONS]``."""

import importlib
import sys
from pathlib import Path

NAMES = ("costs", "raw", "rivals", "growth", "overhead", "outbox", "pruning", "beat", "failover", "dashboard")


def main() -> None:
    """Run the named benchmarks, or all of them; what follows ``--`` goes to each."""
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
