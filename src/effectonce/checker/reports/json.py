"""For programs: a list of objects in the shape of Ruff's JSON, with the rule's name and severity besides."""

import json
from collections.abc import Sequence

from effectonce.checker.findings import Finding
from effectonce.checker.rule import Rule


def render(findings: Sequence[Finding], rules: Sequence[Rule]) -> str:
    """All findings; an empty list where there are none."""
    urls = {rule.code: rule.url for rule in rules}
    return json.dumps([_one(finding, urls[finding.code]) for finding in findings], indent=2) + "\n"


def _one(finding: Finding, url: str) -> dict[str, object]:
    span = finding.span
    return {
        "cell": None,
        "code": finding.code,
        "end_location": {"column": span.end_column, "row": span.end_row},
        "filename": str(finding.path.absolute()),
        "fix": None,
        "location": {"column": span.column, "row": span.row},
        "message": finding.message,
        "name": finding.name,
        "noqa_row": span.row,
        "severity": finding.severity.value,
        "url": url,
    }
