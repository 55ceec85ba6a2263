"""Plots and tables of the documentation, made from the results and from nothing else.

Writes ``docs/pictures/bench-*.svg``, and the tables between the markers of `performance.md` and `planning-for-load.md`.
A result that is missing leaves its table with a line that says so.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from bench import tables
from bench.report import RESULTS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("performance", "planning-for-load")
WIDTH, LEFT, LINE = 720, 300, 26


def main(words: list[str]) -> None:
    """Read all results, write all plots and tables."""
    del words
    results = {file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))}
    for name, lines in PLOTS.items():
        bars = lines(results)
        if bars:
            (DOCS / "pictures" / f"bench-{name}.svg").write_text(plot(bars))
    for page in PAGES:
        file = DOCS / "explanation" / f"{page}.md"
        file.write_text(filled(file.read_text(), results))
        print(f"docs/explanation/{page}.md")


def filled(text: str, results: Mapping[str, Any]) -> str:
    """The page with each table between its markers made anew."""

    def table(found: re.Match[str]) -> str:
        name = found[1]
        drawn = name in PLOTS and PLOTS[name](results)
        picture = [f"![{SHOWS[name]}](../pictures/bench-{name}.svg)", ""] if drawn else []
        lines = tables.TABLES[name](results)
        return "\n".join([f"<!-- table {name} -->", "", *picture, *lines, "", "<!-- end -->"])

    return re.sub(r"<!-- table (\w+) -->.*?<!-- end -->", table, text, flags=re.DOTALL)


Bar = tuple[str, float, float, float, str]
"""Its name, median, least, most, and what is written behind it."""


def plot(bars: Sequence[Bar]) -> str:
    """Bars with whiskers from the least to the most; a line at one."""
    longest = max(1.0, *(most for _, _, _, most, _ in bars)) * 1.25
    height = LINE * len(bars) + 30

    def at(value: float) -> float:
        return LEFT + value / longest * (WIDTH - LEFT - 10)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"',
        ' font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<line x1="{at(1):.1f}" x2="{at(1):.1f}" y1="6" y2="{height - 20}" stroke="#888" stroke-dasharray="3 3"/>',
        f'<text x="{at(1):.1f}" y="{height - 6}" text-anchor="middle" fill="#555">1</text>',
    ]
    for nth, (name, median, least, most, words) in enumerate(bars):
        top = 8 + nth * LINE
        middle = top + LINE / 2 - 4
        parts += [
            f'<text x="{LEFT - 8}" y="{middle + 4:.1f}" text-anchor="end">{escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{at(median) - LEFT:.1f}" height="{LINE - 9}" fill="#4c78a8"/>',
            f'<line x1="{at(least):.1f}" x2="{at(most):.1f}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="#222"/>',
            f'<text x="{at(max(median, most)) + 6:.1f}" y="{middle + 4:.1f}">{escape(words)}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _bar(name: str, found: Mapping[str, float]) -> Bar:
    return name, found["median"], found["least"], found["most"], f"{found['median']:.2f}"


def _rivals(results: Mapping[str, Any]) -> list[Bar]:
    rows = results.get("rivals", {}).get("rows", [])
    return [
        _bar(f"{row['contender']} ({row['broker']}, {row['ledger']}, {row['body']})", row["of_bare"])
        for row in rows
        if row["contender"] != "bare"
    ]


def _raw(results: Mapping[str, Any]) -> list[Bar]:
    rows = results.get("raw", {}).get("rows", [])
    return [
        _bar(f"{row['what']} ({row['store']}, {row['clients']})", row["ratio"])
        for row in rows
        if row["kind"] == "transaction" and row["what"] != row["to"]
    ]


def _growth(results: Mapping[str, Any]) -> list[Bar]:
    rows = [row for row in results.get("growth", {}).get("rows", []) if row["what"] == "size"]
    return [
        (f"{name}, {row['entries']:,} entries", of, of, of, f"{of:.2f} ({row[f'{name}_ms']:.2f} ms)")
        for name in ("p50", "p99")
        for row in rows
        for of in [row[f"{name}_of_first"]]
    ]


PLOTS: dict[str, Callable[[Mapping[str, Any]], list[Bar]]] = {"rivals": _rivals, "raw": _raw, "growth": _growth}

SHOWS = {
    "rivals": "Work done, as a share of bare Celery",
    "raw": "Transactions at the store, as a share of the work alone",
    "growth": "Latency of a claim, as a share of the empty table",
}
