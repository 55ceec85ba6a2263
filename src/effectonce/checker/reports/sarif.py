"""For code scanning: SARIF 2.1.0."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from effectonce import __version__
from effectonce.checker.baseline import fingerprint, shown
from effectonce.checker.findings import Finding, Severity
from effectonce.checker.rule import Rule

SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}


def render(findings: Sequence[Finding], rules: Sequence[Rule], root: Path) -> str:
    """One run with all findings."""
    places = {rule.code: number for number, rule in enumerate(rules)}
    driver = {
        "name": "effectonce",
        "version": __version__,
        "informationUri": "https://effectonce.readthedocs.io",
        "rules": [_rule(rule) for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"ROOT": {"uri": root.as_uri().rstrip("/") + "/"}},
        "results": [_result(finding, places[finding.code], root) for finding in findings],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "helpUri": rule.url,
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.family.value]},
    }


def _result(finding: Finding, place: int, root: Path) -> dict[str, object]:
    span = finding.span
    return {
        "ruleId": finding.code,
        "ruleIndex": place,
        "level": _LEVELS[finding.severity],
        "message": {"text": finding.message},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(finding.path, root),
                    "region": {
                        "startLine": span.row,
                        "startColumn": span.column,
                        "endLine": span.end_row,
                        "endColumn": span.end_column,
                    },
                }
            }
        ],
        "partialFingerprints": {"effectonce/v1": fingerprint(finding, root)},
    }


def _artifact(path: Path, root: Path) -> dict[str, str]:
    absolute = path.absolute()
    if not absolute.is_relative_to(root):
        return {"uri": absolute.as_uri()}
    relative = Path(shown(path, root))
    quoted = (Path("/") / relative).as_uri().removeprefix("file:///")
    return {"uri": quoted, "uriBaseId": "ROOT"}
