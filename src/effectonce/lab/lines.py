"""Facts of several processes in one file that is only appended to.

A line is one write with O_APPEND: lines of several processes do not mix, and a killed process leaves whole lines.
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class Lines:
    """The file at *path*. Processes `append`; one reads `news` as it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def append(self, fact: Mapping[str, Any]) -> None:
        """Append one fact, whole."""
        line = json.dumps(fact).encode() + b"\n"
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, line)
        finally:
            os.close(file)

    def news(self) -> Iterator[dict[str, Any]]:
        """Yield what was appended since the last time."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            yield json.loads(line)
