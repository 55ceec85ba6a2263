"""Files: opened for writing, renamed and removed."""

import builtins
import io
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from effectonce.testing.attempts import Attempt, Touch, current_attempt, touched
from effectonce.testing.faults.patching import shortened

_WRITING = frozenset("wax+")
_MOVING = ("rename", "replace", "remove", "unlink", "mkdir", "rmdir")


@contextmanager
def watched() -> Iterator[None]:
    """Watch ``open`` and what moves files; ``pathlib`` goes through these."""
    with ExitStack() as stack:
        stack.enter_context(_opening())
        for name in _MOVING:
            stack.enter_context(_moving(name))
        yield


@contextmanager
def _opening() -> Iterator[None]:
    plain = builtins.open

    def opening(file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        if current_attempt() is None or not _WRITING & set(mode) or isinstance(file, int):
            return plain(file, mode, *args, **options)
        return touched(lambda attempt: _file(attempt, "write", file), lambda: plain(file, mode, *args, **options))

    builtins.open = opening
    io.open = opening
    try:
        yield
    finally:
        builtins.open = plain
        io.open = plain


@contextmanager
def _moving(name: str) -> Iterator[None]:
    plain = getattr(os, name)

    def moving(path: Any, *args: Any, **options: Any) -> Any:
        return touched(lambda attempt: _file(attempt, name, path, *args[:1]), lambda: plain(path, *args, **options))

    setattr(os, name, moving)
    try:
        yield
    finally:
        setattr(os, name, plain)


def _file(attempt: Attempt, verb: str, *paths: Any) -> Touch:
    names = [os.fspath(path) for path in paths if isinstance(path, (str, os.PathLike))]
    for name in names:
        attempt.files.meet(os.path.abspath(name))  # noqa: PTH100 - pathlib goes through what is watched here
    return Touch(shortened(f"{verb} {' '.join(names)}"))
