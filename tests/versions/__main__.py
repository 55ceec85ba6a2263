"""`python -m tests.versions [ROW...]`: part of the tests in each environment; a row is ``lowest-3.11``."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.versions.environments import EXTRAS, ROOT, ROWS, build, environment, installed, interpreter

OF_THE_NEWEST: Final = "tests/unit/test_celery_names.py"  # reads Celery's newest source
SUITE: Final = (
    OF_THE_NEWEST,
    "tests/unit/domain",
    "tests/unit/runtime",
    "tests/conformance",
    "tests/integration/app/test_calls.py",
    "tests/integration/app/test_kinds.py",
    "tests/integration/commands/test_program.py",
    "tests/integration/django/test_bodies.py",
    "tests/integration/install",
    "tests/integration/outbox/test_bodies.py",
    "tests/integration/redis/test_keys.py",
    "tests/integration/sql/test_tables.py",
    "tests/integration/visibility/test_redis.py",
    "tests/integration/worker/test_effects.py",
)
# Warnings of versions that are not ours to choose are no failures here.
OPTIONS: Final = ("-o", "addopts=--import-mode=importlib", "-o", "filterwarnings=", "-m", "not soak", "-q", "-rf")


def main(chosen: list[str]) -> int:
    """Say for each row what was installed and whether the tests passed; answers 1 when one did not."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="versions-") as folder:
        wheel, _ = build(Path(folder) / "dist")
        for row in ROWS:
            if chosen and row.name not in chosen:
                continue
            if interpreter(row.python) is None:
                print(f"{row.name}: this machine has no Python {row.python}")
                continue
            python = environment(row, f"{wheel}[{EXTRAS}]", Path(folder) / row.name)
            print(row.name, *(f"{name} {version}" for name, version in installed(python).items()), flush=True)
            tests = [each for each in SUITE if not (row.lowest and each == OF_THE_NEWEST)]
            done = subprocess.run([python, "-m", "pytest", *OPTIONS, *tests], cwd=ROOT, check=False)
            failed += done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
