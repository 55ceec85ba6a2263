"""What the checker says: a finding, where it stands, and how bad it is.

Rows and columns count from 1, columns in characters; the end is the place after the last character, as Ruff has it.
"""

import ast
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Severity(StrEnum):
    """How sure a rule is that its findings are mistakes."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"


class Family(StrEnum):
    """What the rules of one hundred of codes are about."""

    KEYS = "keys"
    ACKS = "acks"
    LOCKS = "locks"
    DATABASE = "database"
    SENDING = "sending"
    SCHEDULES = "schedules"
    DEPLOYMENT = "deployment"
    FILES = "files"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A stretch of a file."""

    row: int
    column: int
    end_row: int
    end_column: int

    @classmethod
    def of_line(cls, row: int, text: str = "") -> "Span":
        """The text of a whole line, without its indentation."""
        indent = len(text) - len(text.lstrip())
        return cls(row=row, column=indent + 1, end_row=row, end_column=max(len(text.rstrip()), indent + 1) + 1)

    @classmethod
    def of_node(cls, node: ast.AST, lines: list[str]) -> "Span":
        """Where *node* stands; `ast` counts columns in UTF-8 bytes."""
        row = getattr(node, "lineno", 1)
        end_row = getattr(node, "end_lineno", None) or row
        return cls(
            row=row,
            column=_characters(lines, row, getattr(node, "col_offset", 0)) + 1,
            end_row=end_row,
            end_column=_characters(lines, end_row, getattr(node, "end_col_offset", None) or 0) + 1,
        )


def _characters(lines: list[str], row: int, offset: int) -> int:
    line = lines[row - 1] if 0 < row <= len(lines) else ""
    return offset if line.isascii() else len(line.encode(errors="replace")[:offset].decode(errors="replace"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a rule found: a place and what is wrong there."""

    path: Path
    span: Span
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A `Found` with the rule that found it."""

    code: str
    name: str
    severity: Severity
    path: Path
    span: Span
    message: str
    line: str = ""

    @property
    def order(self) -> tuple[str, Span, str]:
        """Findings are shown by file, then by place."""
        return (str(self.path), self.span, self.code)
