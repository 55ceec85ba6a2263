"""A file as text, read with bounds.

A checker is run on files that nobody vetted. So a file is read at most up to a size, decoded as Python itself would,
and what cannot be read or parsed is one finding; the rest of the project is still checked.
"""

import ast
import io
import re
import sys
import tokenize
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4_000_000
DEEPEST_BRACKETS: Final = 150
_PYTHON: Final = f"Python {sys.version_info.major}.{sys.version_info.minor}"
PARSER_RECURSION: Final = 1000
_NOQA: Final = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*)?", re.IGNORECASE)
_CODE: Final = re.compile(r"[A-Z]+[0-9]+")
_BRACKETS: Final = re.compile(r"[()\[\]{}]")


@dataclass(frozen=True, slots=True)
class Broken:
    """Why a file could not be checked, and where."""

    row: int
    reason: str


@dataclass(frozen=True)
class Source:
    """The text of a file."""

    path: Path
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """Its lines, without their ends, numbered from 0."""
        return re.split(r"\r\n|\r|\n", self.text)

    def line(self, row: int) -> str:
        """The line *row*, counted from 1; empty where there is none."""
        return self.lines[row - 1] if 0 < row <= len(self.lines) else ""

    def silences(self, row: int, code: str) -> bool:
        """Tell whether a `# noqa` on line *row* covers *code*."""
        match = _NOQA.search(self.line(row))
        if match is None:
            return False
        codes = match["codes"]
        return codes is None or code in {each.upper() for each in _CODE.findall(codes.upper())}


def read(path: Path) -> Source | Broken:
    """Read *path* as Python would: its declared encoding, else UTF-8."""
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
    except OSError as error:
        return Broken(1, f"cannot be read: {error.strerror or error}")
    if len(raw) > MOST_BYTES:
        return Broken(1, f"is larger than {MOST_BYTES:,} bytes and was not read")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        return Source(path, raw.decode(encoding))
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        return Broken(1, f"cannot be decoded: {error}")


def parse(source: Source) -> ast.Module | Broken:
    """Parse the text of a Python file; what the parser cannot take is `Broken`, whatever it raises."""
    too_deep = _too_deep(source.text)
    if too_deep is not None:
        return too_deep
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(PARSER_RECURSION)  # the parser recurses in C, where a larger limit is a crash
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text)
    except SyntaxError as error:
        return Broken(error.lineno or 1, f"is not {_PYTHON}: {error.msg}")
    except (RecursionError, MemoryError):
        return Broken(1, "is nested too deeply to be parsed")
    except ValueError as error:
        return Broken(1, f"is not {_PYTHON}: {error}")
    finally:
        sys.setrecursionlimit(limit)


def _too_deep(text: str) -> Broken | None:
    """Refuse nests of brackets before the parser, which may need exponential time for them, sees them."""
    if max(text.count(bracket) for bracket in "([{") <= DEEPEST_BRACKETS:
        return None
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        if depth > DEEPEST_BRACKETS:
            return Broken(text.count("\n", 0, match.start()) + 1, "is nested too deeply to be parsed")
    return None
