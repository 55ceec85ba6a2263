"""The forms in which findings are written down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from effectonce.checker.findings import Finding
from effectonce.checker.reports import github, json, sarif, text
from effectonce.checker.rule import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is written down: findings, the rules that were asked, and the folder that paths are shown from."""

    findings: Sequence[Finding]
    rules: Sequence[Rule]
    root: Path


FORMATS: Final[dict[str, Callable[[Report], str]]] = {
    "text": lambda report: text.render(report.findings, Path.cwd()),
    "json": lambda report: json.render(report.findings, report.rules),
    "sarif": lambda report: sarif.render(report.findings, report.rules, report.root),
    "github": lambda report: github.render(report.findings, Path.cwd()),
}
