"""Break the guard in each way of the catalogue, one after the other, and run the tests that must notice.

The source is copied, and the copy is broken; the checkout stays as it is. Arguments choose mutants by words of their
names. Ends with 1 when one survives.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
FAILED = 1
"""How pytest ends when a test failed; any other end is a fault of the catalogue."""


def main(words: list[str]) -> int:
    """Try them all; answers how the program ends."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    ends = [_tried(mutant) for mutant in chosen]
    print(f"{ends.count('noticed')} of {len(ends)} mutants are noticed")  # noqa: T201 - a program
    return 0 if set(ends) <= {"noticed"} else 1


def _tried(mutant: Mutant) -> str:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="effectonce-mutant-") as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        broken = source / "effectonce" / mutant.file
        broken.write_text(broken.read_text().replace(mutant.old, mutant.new))
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests]
        env = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    end = {FAILED: "noticed", 0: "SURVIVED"}.get(done.returncode, f"COULD NOT BE TRIED ({done.returncode})")
    by = said[0].removeprefix("FAILED ").partition(" - ")[0] if said else done.stdout[-500:]
    print(f"{end:9} {time.monotonic() - began:5.0f} s  {mutant.name}\n{'':19}{by}", flush=True)  # noqa: T201 - a program
    return end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
