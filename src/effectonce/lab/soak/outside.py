"""The outside world of a soak: a receiver that honours idempotency keys, and notes each call it gets.

It is one file that is only appended to; a line is one write, so a killed process leaves whole lines. Nothing in it
hinders a second call. Two calls that show one key are one act; another key for the same order is a second act.
"""

import os
from collections import defaultdict
from pathlib import Path


class Outside:
    """The file; bodies call, the judge reads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def call(self, task: str, order: int, key: str) -> None:
        """Do what *task* does for *order*, showing *key*."""
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, f"{task} {order} {key}\n".encode())
        finally:
            os.close(file)

    def calls(self) -> dict[tuple[str, int], list[str]]:
        """Return the keys that were shown, one a call, for each task and order."""
        calls: dict[tuple[str, int], list[str]] = defaultdict(list)
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                task, order, key = line.split()
                calls[task, int(order)].append(key)
        return calls
