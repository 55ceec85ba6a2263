"""For GitHub Actions: one workflow command a finding, shown beside the line of a pull request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from effectonce.checker.baseline import shown
from effectonce.checker.findings import Finding, Severity

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "notice"}


def render(findings: Sequence[Finding], root: Path) -> str:
    """All findings."""
    return "".join(_one(finding, root) + "\n" for finding in findings)


def _one(finding: Finding, root: Path) -> str:
    span = finding.span
    facts = {
        "title": f"effectonce ({finding.code} {finding.name})",
        "file": shown(finding.path, root),
        "line": str(span.row),
        "endLine": str(span.end_row),
        "col": str(span.column),
        "endColumn": str(span.end_column),
    }
    listed = ",".join(f"{name}={_property(value)}" for name, value in facts.items())
    return f"::{_COMMANDS[finding.severity]} {listed}::{_text(f'{finding.code} {finding.message}')}"


def _text(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _text(value).replace(":", "%3A").replace(",", "%2C")
