"""The results as one page of HTML that needs nothing else, light and dark, with a timeline of every trial."""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from effectonce.lab.contenders import CONTENDERS
from effectonce.lab.results.report import Report, cell
from effectonce.lab.results.timeline import timeline
from effectonce.lab.scenarios import SCENARIOS
from effectonce.lab.trials.verdict import WORDS

_STYLE: Final = """
:root { color-scheme: light dark; --good: #1a7f37; --bad: #cf222e; --dim: #59636e; --line: #8886; --body: #6aa5e8;
  --act: #1a7f37; --ground: #fff }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72; --dim: #9198a1; --body: #316dca;
  --act: #56d364; --ground: #0d1117 } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  background: var(--ground) }
h1 { font-size: 1.5rem } h2 { font-size: 1.2rem; margin-top: 2.5rem } h3 { font-size: 1rem; margin: 1.2rem 0 .2rem }
.wide { overflow-x: auto } table { border-collapse: collapse; font-size: .9rem }
td, th { border-bottom: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top }
.good { color: var(--good) } .bad { color: var(--bad) } .dim, .lane, .tick { color: var(--dim); fill: var(--dim) }
svg { width: 100%; max-width: 760px; height: auto } svg text { font: 12px system-ui, sans-serif }
.rail { stroke: var(--line) } .body { fill: var(--body) } .dead { opacity: .45 } .open { opacity: .7 }
.send { fill: var(--dim) } .act { fill: var(--act); stroke: var(--ground) }
.kill { stroke: var(--bad); stroke-width: 2.5; fill: none } .refuse { fill: none; stroke: var(--bad); stroke-width: 2 }
pre { white-space: pre-wrap; font-size: .8rem }
"""


def page_of(report: Report) -> str:
    """The whole page; all that comes from outside is escaped."""
    wrong = len(report.wrong)
    title = "effectonce lab"
    told = "effectonce is right in every row" if not wrong else f"effectonce is WRONG in {wrong} rows"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1>{title}: <span class="{"bad" if wrong else "good"}">{told}</span></h1>\n'
        f"<p class=dim>{escape(', '.join(f'{name} {number}' for name, number in report.versions.items()))}</p>\n"
        f"{_table(report)}\n{_words()}\n{_legend()}\n"
        + "\n".join(_scenario(report, each) for each in report.scenarios)
        + "\n</body>\n</html>\n"
    )


def _table(report: Report) -> str:
    names = report.contenders
    head = "".join(f"<th scope=col>{escape(CONTENDERS[name].title)}</th>" for name in names)
    rows = "\n".join(
        f'<tr><th scope=row><a href="#{escape(each)}">{escape(each)}</a></th>'
        + "".join(f"<td>{_cell(report.row(each, name))}</td>" for name in names)
        + "</tr>"
        for each in report.scenarios
    )
    return f'<div class="wide"><table>\n<tr><th scope=col>scenario</th>{head}</tr>\n{rows}\n</table></div>'


def _cell(row: Mapping[str, Any] | None) -> str:
    text = cell(row)
    mark = "dim" if row is None or "missing" in row else "good" if list(row["words"]) == ["once"] else "bad"
    return f'<span class="{mark}">{escape(text)}</span>'


def _words() -> str:
    rows = "".join(f"<tr><th scope=row>{word}</th><td>{escape(meaning)}</td></tr>" for word, meaning in WORDS.items())
    return f"<details><summary>What the words mean</summary><table>{rows}</table></details>"


def _legend() -> str:
    return (
        "<p class=dim>Timelines: a triangle is a message sent, a bar a body, a dot its effect (of a guarded body: its "
        "row, which is gone if the body dies), a cross a kill, a square a call refused or swallowed.</p>"
    )


def _scenario(report: Report, name: str) -> str:
    known = SCENARIOS.get(name)
    question = known.question if known else ""
    trials = "\n".join(
        _trial(name, contender, row)
        for contender in report.contenders
        if (row := report.row(name, contender)) is not None
    )
    return f'<h2 id="{escape(name)}">{escape(name)}</h2>\n<p>{escape(question)}</p>\n{trials}'


def _trial(name: str, contender: str, row: Mapping[str, Any]) -> str:
    title = CONTENDERS[contender].title
    head = f"<h3>{escape(title)}: {_cell(row)}</h3>"
    if "missing" in row:
        return f"{head}<p class=dim>not tried, for want of {escape(row['missing'])}</p>"
    broken = row["outcome"].get("broken")
    told = f"<pre>{escape(broken)}</pre>" if broken else f"<p class=dim>{escape(_counts(row['outcome']))}</p>"
    return f"{head}{told}{timeline(row.get('moments', ()), title=f'{name} with {title}')}"


def _counts(outcome: Mapping[str, Any]) -> str:
    effects = ", ".join(f"{intent}: {times}" for intent, times in sorted(outcome["effects"].items())) or "none"
    bodies = sum(outcome["bodies"].values())
    answers = ", ".join(call["refused"] or call["state"] for call in outcome["calls"])
    return f"bodies run: {bodies}; effects: {effects}; answers: {answers}"
