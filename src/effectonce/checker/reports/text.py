"""For people: the place, the line, a caret under what is meant."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from effectonce.checker.baseline import shown
from effectonce.checker.findings import Finding

WIDEST: Final = 200


def render(findings: Sequence[Finding], root: Path) -> str:
    """All findings, then their number."""
    parts = [_one(finding, root) for finding in findings]
    parts.append(_closing(len(findings)))
    return "\n".join(parts) + "\n"


def _closing(number: int) -> str:
    if number == 0:
        return "All checks passed."
    return f"Found {number} mistake{'' if number == 1 else 's'}. `effectonce check --explain CODE` says more of each."


def _one(finding: Finding, root: Path) -> str:
    span = finding.span
    place = f"{shown(finding.path, root)}:{span.row}:{span.column}"
    out = [f"{place}: {finding.code} [{finding.name}] {finding.message}"]
    if finding.line.strip():
        out += _drawn(finding)
    return "\n".join(out) + "\n"


def _drawn(finding: Finding) -> list[str]:
    """The line and its caret; tabs become spaces so that they stand one above the other, a long line is cut."""
    span = finding.span
    before = finding.line[: span.column - 1].expandtabs(4)
    whole = finding.line.expandtabs(4).rstrip()
    indent = min(len(whole) - len(whole.lstrip()), len(before))
    end = span.end_column if span.end_row == span.row else len(finding.line.rstrip()) + 1
    marked = len(finding.line[: end - 1].expandtabs(4)) - len(before)
    shown_line = whole[indent : indent + WIDEST]
    start = min(len(before) - indent, WIDEST)
    number = str(span.row)
    margin = " " * len(number)
    return [
        f"  {margin} |",
        f"  {number} | {shown_line}",
        f"  {margin} | {' ' * start}{'^' * max(1, min(marked, WIDEST - start))}",
    ]
