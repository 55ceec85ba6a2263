"""Break every line of ``domain``, one after the other, with mutmut: `just mutants-of-domain`.

mutmut lives in a folder that is thrown away, from a lock of its own, beside the packages that are installed, and works
in a copy of the checkout. Arguments are names of mutants, with ``*`` for any letters: then only these are tried. Ends
with 1 when fewer than `ENOUGH` are noticed; who survives is listed with its difference.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
ENOUGH: Final = 0.9
"""The share of mutants that the tests must notice."""
TESTS: Final = ("tests/unit/domain", "tests/property/test_series.py")
"""Quick ones that drive the domain alone; Hypothesis draws the same examples each time."""
_CONFIGURATION: Final = {
    "source_paths": ["src/"],
    "only_mutate": ["src/effectonce/domain/*"],
    "pytest_add_cli_args": ["-p", "no:cacheprovider", "--timeout=0", "--hypothesis-profile=ci"],
    "pytest_add_cli_args_test_selection": TESTS,
    "also_copy": ["README.md", "docs"],
}
_TRIED: Final = ("killed", "timeout", "survived", "no_tests", "suspicious", "segfault")


def main(names: list[str]) -> int:
    """Try them all; answers how the program ends."""
    with tempfile.TemporaryDirectory(prefix="effectonce-mutmut-") as folder:
        copy, packages = Path(folder) / "checkout", Path(folder) / "packages"
        _copy(copy)
        lock = ROOT / "requirements" / "mutants.lock"
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "-r", str(lock)]
        subprocess.run([*pip, "--target", str(packages)], check=True)
        env = {**os.environ, "PYTHONPATH": str(packages), "PYTHONDONTWRITEBYTECODE": "1"}

        def mutmut(*words: str) -> str:
            command = [sys.executable, "-m", "mutmut", *words]
            done = subprocess.run(command, cwd=copy, env=env, check=True, stdout=subprocess.PIPE, text=True)
            return done.stdout

        mutmut("run", *names)
        mutmut("export-cicd-stats")
        for line in mutmut("results").splitlines():
            if line.endswith((": survived", ": no tests")):
                print(mutmut("show", line.strip().partition(":")[0]))  # noqa: T201 - a program
        return _told(json.loads((copy / "mutants" / "mutmut-cicd-stats.json").read_text()))


def _copy(copy: Path) -> None:
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, copy / name)
    lines = [f"{name}=" + "\n    ".join(values) for name, values in _CONFIGURATION.items()]
    (copy / "setup.cfg").write_text("\n".join(["[mutmut]", *lines, ""]))


def _told(stats: dict[str, int]) -> int:
    noticed, tried = stats["killed"] + stats["timeout"], sum(stats[name] for name in _TRIED)
    print(f"{noticed} of {tried} mutants of domain are noticed: {noticed / tried:.1%}")  # noqa: T201 - a program
    return 0 if noticed / tried >= ENOUGH else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
