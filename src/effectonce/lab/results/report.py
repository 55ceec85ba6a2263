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

    def to_json(self, *, moments: bool = True) -> str:
        """Write it; without *moments* the timelines are left out."""
        rows = [{key: value for key, value in row.items() if moments or key != "moments"} for row in self.rows]
        return json.dumps({"versions": self.versions, "rows": rows}, indent=1)

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


def _most(outcome: Mapping[str, Any]) -> int:
    return int(max(outcome["effects"].values(), default=0))
