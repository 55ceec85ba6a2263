"""What happened in a trial, drawn: one line a process, time to the right, as SVG that needs nothing else."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

_WIDTH: Final = 760
_LEFT: Final = 110
_LANE: Final = 24
_MARKS: Final = {"sent": "send", "acted": "act", "killed": "kill", "refused": "refuse", "suppressed": "refuse"}


def timeline(moments: Sequence[Mapping[str, Any]], *, title: str) -> str:
    """Draw the *moments* of one trial; *title* is what a screen reader says."""
    if not moments:
        return ""
    start = float(min(each["at"] for each in moments))
    span = float(max(max(each["at"] for each in moments) - start, 1.0))
    lanes = _lanes(moments)
    height = _LANE * len(lanes) + 26

    def x(at: float) -> float:
        return round(_LEFT + (at - start) / span * (_WIDTH - _LEFT - 12), 1)

    parts = [_lane(name, index) for index, name in enumerate(lanes.values())]
    rows = {pid: index * _LANE + 12 for index, pid in enumerate(lanes)}
    parts += [_bar(each, rows, x) for each in _bodies(moments, start + span)]
    parts += [_mark(each, rows, x, start) for each in moments if each["what"] in _MARKS]
    parts += [_second(at, x(start + at), height) for at in _grid(span)]
    return (
        f'<svg role="img" viewBox="0 0 {_WIDTH} {height}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _lanes(moments: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Each process that did something, named in the order of its appearance; the caller first."""
    lanes: dict[int, str] = {}
    bodies = {each["pid"] for each in moments if each["what"] in {"began", "acted", "ended"}}
    for each in moments:
        if each["what"] not in _MARKS and each["what"] not in {"began", "ended"}:
            continue
        if each["what"] == "killed" and each["pid"] not in bodies:
            continue
        if each["pid"] not in lanes:
            number = 1 + sum(1 for name in lanes.values() if name.startswith("process"))
            lanes[each["pid"]] = f"process {number}" if each["pid"] in bodies else "caller"
    return lanes


def _bodies(moments: Sequence[Mapping[str, Any]], end: float) -> list[tuple[int, float, float, str]]:
    """Bars: process, begin, end, kind."""
    bars: list[tuple[int, float, float, str]] = []
    begun: dict[tuple[int, str], float] = {}
    for each in moments:
        place = (each["pid"], each["intent"])
        if each["what"] == "began":
            begun[place] = each["at"]
        elif each["what"] == "ended" and place in begun:
            bars.append((each["pid"], begun.pop(place), each["at"], "body"))
        elif each["what"] == "killed":
            dead = [other for other in begun if other[0] == each["pid"]]
            bars += [(each["pid"], begun.pop(other), each["at"], "body dead") for other in dead]
    bars += [(pid, at, end, "body open") for (pid, _), at in begun.items()]
    return bars


def _lane(name: str, index: int) -> str:
    y = index * _LANE + 12
    return (
        f'<text class="lane" x="0" y="{y + 4}">{escape(name)}</text>'
        f'<line class="rail" x1="{_LEFT}" x2="{_WIDTH}" y1="{y}" y2="{y}"/>'
    )


def _bar(body: tuple[int, float, float, str], rows: Mapping[int, int], x: Any) -> str:
    pid, begin, end, kind = body
    width = max(x(end) - x(begin), 2)
    return f'<rect class="{kind}" x="{x(begin)}" y="{rows[pid] - 6}" width="{width:.1f}" height="12" rx="3"/>'


def _mark(moment: Mapping[str, Any], rows: Mapping[int, int], x: Any, start: float) -> str:
    if moment["pid"] not in rows:
        return ""
    at, y, kind = x(moment["at"]), rows[moment["pid"]], _MARKS[moment["what"]]
    said = " ".join(word for word in (moment["what"], moment["intent"], moment["text"]) if word)
    shape = {
        "send": f"M{at - 5} {y - 6}h10l-5 10z",
        "act": f"M{at - 5} {y}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z",
        "kill": f"M{at - 5} {y - 7}l10 14m-10 0l10 -14",
        "refuse": f"M{at - 5} {y - 5}h10v10h-10z",
    }[kind]
    return f'<path class="{kind}" d="{shape}"><title>{moment["at"] - start:.1f} s: {escape(said)}</title></path>'


def _second(at: float, x: float, height: int) -> str:
    return f'<text class="tick" x="{x}" y="{height - 4}">{at:g} s</text>'


def _grid(span: float) -> list[float]:
    step = next((step for step in (1, 2, 5, 10, 20) if span / step <= 10), 60)  # noqa: PLR2004 - ten words fit
    return [float(at) for at in range(0, int(span) + 1, step)]
