"""Which files a run reads.

Tests send tasks as no program does, and migrations run once. So both are left out where a folder is walked; a file or a
folder that is named itself is read.
"""

import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from effectonce.checker.deployment.reading import may_be_deployment
from effectonce.checker.options import Options, OptionsInvalid

NEVER: Final = {
    ".git",
    ".hg",
    ".svn",
    ".tox",
    ".nox",
    ".venv",
    "venv",
    "env",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    "__pycache__",
    "__pypackages__",
    "node_modules",
    "site-packages",
    "dist",
    "build",
    ".eggs",
}
TESTS: Final = {"tests", "test", "migrations"}
"""Folders that are left out unless they are asked for."""

_TEST_FILES: Final = ("test_*.py", "*_test.py", "tests.py", "conftest.py")


def collect(paths: Iterable[Path], options: Options) -> tuple[list[Path], list[Path]]:
    """The files of Python and the other ones under *paths*, each once; a path that is not there is refused."""
    python: dict[Path, None] = {}
    other: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            reason = f"{path}: there is no such file or folder"
            raise OptionsInvalid(reason)
        for file in _files(path, options):
            if file.suffix == ".py":
                python[file] = None
            elif may_be_deployment(file):
                other[file] = None
    return list(python), list(other)


def _files(path: Path, options: Options) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = sorted(
            each
            for each in folders
            if not _is_left_out(each, options)
            and not options.excludes(here / each)
            and not (here / each / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            file = here / name
            if not _is_test(name, options) and not options.excludes(file) and file.is_file():
                yield file


def _is_left_out(folder: str, options: Options) -> bool:
    return folder in NEVER or "{{" in folder or (folder in TESTS and not options.include_tests)


def _is_test(file: str, options: Options) -> bool:
    return not options.include_tests and any(fnmatch(file, pattern) for pattern in _TEST_FILES)
