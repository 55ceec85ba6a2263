"""The results as Markdown, and pages that keep up with them.

``python -m effectonce.lab.results.markdown RESULTS.json ...``, in a checkout, puts runs together, keeps what the tables
need as ``docs/reference/lab-results.json``, and rewrites what stands between the marks of the pages:
``<!-- lab: summary -->`` or ``<!-- lab: table -->``, up to ``<!-- lab: end -->``.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from effectonce.lab.contenders import CONTENDERS
from effectonce.lab.results.report import Report, cell
from effectonce.lab.scenarios import SCENARIOS

KEPT: Final = Path("docs/reference/lab-results.json")
PAGES: Final = (Path("README.md"), Path("docs/reference/lab-results.md"))
_MARKED: Final = re.compile(r"(<!-- lab: (\w+) -->\n).*?(<!-- lab: end -->)", re.DOTALL)


def rewritten(page: str, report: Report) -> str:
    """Return *page* with its marked parts made anew from *report*."""
    return _MARKED.sub(lambda part: part[1] + "\n".join(PARTS[part[2]](report)) + "\n" + part[3], page)


def summary(report: Report) -> Iterator[str]:
    """Yield a table: one row a group of scenarios, in how many of them each contender is right."""
    names = [name for name in report.contenders if CONTENDERS[name].works]
    groups: dict[str, list[str]] = {}
    for each in report.scenarios:
        groups.setdefault(SCENARIOS[each].group, []).append(each)
    yield from _head("what is made to happen", names)
    for group, scenarios in groups.items():
        cells = [_share([report.row(each, name) for each in scenarios]) for name in names]
        yield f"| {group} ({len(scenarios)}) | {' | '.join(cells)} |"


def table(report: Report) -> Iterator[str]:
    """Yield the whole table, and with which versions it was measured."""
    yield from _head("scenario", report.contenders)
    for each in report.scenarios:
        cells = [cell(report.row(each, name)) for name in report.contenders]
        yield f"| `{each}` | {' | '.join(cells)} |"
    yield ""
    yield f"Measured with {', '.join(f'{name} {number}' for name, number in report.versions.items())}."


PARTS: Final[Mapping[str, Callable[[Report], Iterator[str]]]] = {"summary": summary, "table": table}


def _head(first: str, names: list[str]) -> Iterator[str]:
    yield f"| {first} | {' | '.join(CONTENDERS[name].title for name in names)} |"
    yield "|---" * (len(names) + 1) + "|"


def _share(rows: list[Mapping[str, Any] | None]) -> str:
    tried = [row for row in rows if row is not None and "words" in row and row["words"] != ["broken"]]
    right = sum(1 for row in tried if row["words"] == ["once"])
    return f"{right} of {len(tried)}" if tried else "-"


if __name__ == "__main__":
    measured = Report.merged([Report.from_json(Path(word).read_text(encoding="utf-8")) for word in sys.argv[1:]])
    KEPT.write_text(measured.to_brief_json(), encoding="utf-8")
    for page in PAGES:
        page.write_text(rewritten(page.read_text(encoding="utf-8"), measured), encoding="utf-8")
