"""What a proof found: the verdict, and the report that a person reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_SHOWN: Final = 8
"""Findings that a report shows in full."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What became different, and by which fault: *fault* in words, *differences* a line each."""

    fault: str
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """A task that takes effect once, as far as this could be tried.

    *points*: what the body touches, in order. *trials*: how often it was run with a fault. *left_out*: columns that
    were not compared, since two clean runs differ in them. *notes*: what could not be tried, and why.
    """

    task: str
    points: tuple[str, ...]
    trials: int
    left_out: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        """A report in a few lines."""
        lines = [f"{self.task} takes effect once: {self.trials} trials at {len(self.points)} points"]
        lines += [f"  {number}. {what}" for number, what in enumerate(self.points, 1)]
        return "\n".join([*lines, *_footer(self.left_out, self.notes)])


class NotOnce(AssertionError):
    """A task does not take effect once; *findings* say by which fault what becomes different."""

    def __init__(
        self,
        task: str,
        findings: Sequence[Finding],
        points: Sequence[str],
        left_out: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(task, findings, points, left_out, notes)
        self.task = task
        self.findings = tuple(findings)
        self.points = tuple(points)
        self.left_out = tuple(left_out)
        self.notes = tuple(notes)

    def __str__(self) -> str:
        """The report: each fault with what it changed, then what the body touches."""
        lines = [f"{self.task} does not take effect once"]
        for finding in self.findings[:_SHOWN]:
            lines += ["", f"  {finding.fault}:", *(f"    {line}" for line in finding.differences)]
        if len(self.findings) > _SHOWN:
            lines += ["", f"  and {len(self.findings) - _SHOWN} more faults with such an end"]
        lines += ["", "  what the body touches:"]
        lines += [f"    {number}. {what}" for number, what in enumerate(self.points, 1)]
        return "\n".join([*lines, *_footer(self.left_out, self.notes)])


def _footer(left_out: Sequence[str], notes: Sequence[str]) -> list[str]:
    told = [f"  left out, since two clean runs differ in it: {', '.join(left_out)}"] if left_out else []
    return [*told, *(f"  note: {note}" for note in notes)]
