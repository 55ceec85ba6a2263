"""The results of one run, as JSON that says with which versions they were measured, and no date."""

import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final, Self

from effectonce.lab.contenders import CONTENDERS, OURS
from effectonce.lab.scenarios import SCENARIOS

_PACKAGES: Final = ("effectonce", "celery", "kombu", "billiard", "redis", "sqlalchemy", "psycopg")


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All rows of a run: one a scenario and contender, in the order of the table."""

    versions: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]]) -> Self:
        """Take rows with the versions of this environment."""
        return cls(versions=versions(), rows=rows)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        read = json.loads(text)
        return cls(versions=read["versions"], rows=read["rows"])

    @classmethod
    def merged(cls, reports: "Sequence[Report]") -> Self:
        """Put several runs together; of two rows for the same question the later one counts."""
        rows = {(row["scenario"], row["contender"]): row for report in reports for row in report.rows}
        found = {name: number for report in reports for name, number in report.versions.items()}
        order = {name: index for index, name in enumerate(SCENARIOS)}
        known = [row for row in rows.values() if row["scenario"] in order]
        return cls(versions=found, rows=sorted(known, key=lambda row: order[row["scenario"]]))

    def to_json(self) -> str:
        """Write it, with the timelines."""
        return json.dumps({"versions": self.versions, "rows": self.rows}, indent=1)

    def to_brief_json(self) -> str:
        """Write what the table needs, one row a line: no timelines, no ids, no durations."""
        rows = ",\n".join(json.dumps(_brief(row)) for row in self.rows)
        return f'{{"versions": {json.dumps(self.versions, indent=1)},\n"rows": [\n{rows}\n]}}\n'

    @property
    def scenarios(self) -> list[str]:
        """The names of those that were tried, in their order."""
        tried = {row["scenario"] for row in self.rows}
        return [*(name for name in SCENARIOS if name in tried), *sorted(tried - SCENARIOS.keys())]

    @property
    def contenders(self) -> list[str]:
        """The names of those that were tried, in their order."""
        tried = {row["contender"] for row in self.rows}
        return [name for name in CONTENDERS if name in tried]

    def row(self, scenario: str, contender: str) -> Mapping[str, Any] | None:
        """Return one row; None when this contender was not asked."""
        return next((row for row in self.rows if (row["scenario"], row["contender"]) == (scenario, contender)), None)

    @property
    def wrong(self) -> list[Mapping[str, Any]]:
        """The rows in which our own column is not right; one that lacked a part is none."""
        return [row for row in self.rows if row["contender"] == OURS and list(row.get("words", ["once"])) != ["once"]]


def cell(row: Mapping[str, Any] | None) -> str:
    """What the table says of a row: the verdict, with the number of effects where there were too many."""
    if row is None:
        return "-"
    if "missing" in row:
        return "not tried"
    words: list[str] = list(row["words"])
    if words[0] in {"doubled", "unasked"}:
        words[0] = f"{words[0]} ({_most(row['outcome'])}x)"
    if words[0] == "endless":
        words[0] = f"endless ({max(row['outcome']['bodies'].values())} bodies)"
    return ", ".join(words)


def versions() -> dict[str, str]:
    """Return what is installed, rivals too, and where it runs."""
    found = {"python": platform.python_version(), "system": sys.platform}
    for name in dict.fromkeys([*_PACKAGES, *(each.package for each in CONTENDERS.values())]):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _brief(row: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: row[name] for name in ("scenario", "contender", "missing", "words") if name in row}
    if "outcome" not in row:
        return told
    outcome = row["outcome"]
    if outcome.get("broken"):
        return {**told, "outcome": {"broken": outcome["broken"].strip().splitlines()[-1]}}
    answers = [call["refused"] or call["state"] for call in outcome["calls"]]
    return {**told, "outcome": {"effects": outcome["effects"], "bodies": outcome["bodies"], "answers": answers}}


def _most(outcome: Mapping[str, Any]) -> int:
    return int(max(outcome["effects"].values(), default=0))
