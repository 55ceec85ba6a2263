"""A proof as one page of HTML that needs nothing else: for a pull request, or for whoever asks later."""

from collections.abc import Iterable, Sequence
from html import escape

from effectonce.testing.verdict import NotOnce, Proof

_STYLE = """
:root { color-scheme: light dark; --good: #1a7f37; --bad: #cf222e; --line: #8886 }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
code, pre { font-family: ui-monospace, monospace; font-size: .9rem } pre { white-space: pre-wrap; margin: 0 }
.good { color: var(--good) } .bad { color: var(--bad) }
table { border-collapse: collapse; width: 100% }
td, th { border-bottom: 1px solid var(--line); padding: .4rem .6rem; text-align: left; vertical-align: top }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #ff7b72 } }
"""


def page_of(found: Proof | NotOnce) -> str:
    """The whole page; all that comes from the user's code is escaped."""
    if isinstance(found, NotOnce):
        verdict, mark = f"{found.task} does not take effect once", "bad"
        body = _findings(found)
    else:
        verdict, mark = f"{found.task} takes effect once", "good"
        body = f"<p>{found.trials} trials at {len(found.points)} points ended as one clean run.</p>"
    sign = {"good": "\u2713", "bad": "\u2717"}[mark]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(verdict)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<h1 class="{mark}">{sign} {escape(verdict)}</h1>\n{body}\n'
        f"<h2>What the body touches</h2>\n{_list(found.points, ordered=True)}\n"
        f"{_footer(found.left_out, found.notes)}</body>\n</html>\n"
    )


def _findings(found: NotOnce) -> str:
    rows = "\n".join(
        f"<tr><td>{escape(each.fault)}</td><td><pre>{escape(chr(10).join(each.differences))}</pre></td></tr>"
        for each in found.findings
    )
    head = "<tr><th>After this fault</th><th>this is otherwise than after one clean run</th></tr>"
    return f"<table>\n{head}\n{rows}\n</table>"


def _footer(left_out: Sequence[str], notes: Sequence[str]) -> str:
    told = [f"Left out, since two clean runs differ in it: {', '.join(left_out)}"] if left_out else []
    told += notes
    return f"<h2>To know</h2>\n{_list(told)}\n" if told else ""


def _list(lines: Iterable[str], *, ordered: bool = False) -> str:
    kind = "ol" if ordered else "ul"
    return f"<{kind}>" + "".join(f"<li><code>{escape(line)}</code></li>" for line in lines) + f"</{kind}>"
