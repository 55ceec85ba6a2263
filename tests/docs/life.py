"""The transitions of an entry, tried out on a ledger, and the picture made of them: `python -m tests.docs.life`.

Each move is made from each state. What changes the state is an arrow; what changes nothing is none.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.stores.memory import MemoryLedger

PICTURE: Final = Path(__file__).parents[2] / "docs" / "pictures" / "life-of-an-effect.svg"
LEASE: Final = 10.0
KEEP: Final = 100.0
BY: Final = b"a person"
NOTHING: Final = "nothing"
"""No entry: the effect is not known yet, or not any more."""

Arrows = Mapping[tuple[str, str], tuple[str, ...]]
"""Names of the moves, by the states that they lead from and to."""


class Tried:
    """A ledger with one effect in it, on a clock that stands until it is set."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.ledger = MemoryLedger(clock=lambda: self.now)
        self._attempts = 0
        self.granted: Granted | None = None

    @property
    def entry(self) -> Entry | None:
        """The entry as it stands."""
        return self.ledger.read(b"d" * 16)

    @property
    def state(self) -> str:
        """Its state in words."""
        entry = self.entry
        return NOTHING if entry is None else entry.state.name.lower()

    def claim(self) -> None:
        """Another message asks for it."""
        self._attempts += 1
        number = bytes([self._attempts])
        answer = self.ledger.claim(
            Claim(
                digest=b"d" * 16,
                key="charge:7",
                attempt=number * 8,
                identity=number * 16,
                task_id=f"m{self._attempts}",
                fingerprint=b"",
                lease=LEASE,
                max_takeovers=5,
                keep=KEEP,
            )
        )
        self.granted = answer if isinstance(answer, Granted) else self.granted

    def complete(self) -> None:
        """The holder has done it."""
        self._end(State.COMPLETED)

    def fail(self) -> None:
        """It failed in a way that is remembered."""
        self._end(State.FAILED)

    def _end(self, state: State) -> None:
        if self.granted is not None:
            self.ledger.complete(self.granted, Outcome(state=state, keep=KEEP))

    def release(self) -> None:
        """The holder lets go."""
        if self.granted is not None:
            self.ledger.release(self.granted, retries=0, reset=True, keep=KEEP)

    def doubt(self) -> None:
        """Nobody knows how its step ended."""
        if self.granted is not None and self.state == "claimed":
            self.ledger.mark_unknown(self.granted.digest, self.granted.attempt)

    def die(self) -> None:
        """Its holder is dead, and a rescuer comes by."""
        self.now += 3 * LEASE
        self.ledger.rescue(9)

    def poison(self) -> None:
        """Its holders have died too often."""
        entry = self.entry
        if entry is not None:
            self.now += 3 * LEASE
            self.ledger.poison(self.entry or entry, b"message")

    def settle(self, state: State) -> None:
        """A person says how it ended."""
        entry = self.entry
        if entry is not None:
            self.ledger.settle_held(entry, Outcome(state=state, keep=KEEP), by=BY)

    def free(self) -> None:
        """A person lets it run again."""
        entry = self.entry
        if entry is not None:
            self.ledger.free(entry, by=BY, keep=KEEP)

    def wait(self) -> None:
        """Its time passes."""
        self.now += 2 * KEEP


def _then(*moves: Callable[[Tried], None]) -> Callable[[Tried], None]:
    """All of them, in turn."""

    def go(tried: Tried) -> None:
        for move in moves:
            move(tried)

    return go


WAYS: Final[Mapping[str, Callable[[Tried], None]]] = {
    NOTHING: _then(),
    "claimed": Tried.claim,
    "completed": _then(Tried.claim, Tried.complete),
    "failed": _then(Tried.claim, Tried.fail),
    "released": _then(Tried.claim, Tried.release),
    "unknown": _then(Tried.claim, Tried.doubt),
    "poisoned": _then(Tried.claim, Tried.poison),
}
MOVES: Final[Mapping[str, Callable[[Tried], None]]] = {
    "claim": Tried.claim,
    "complete": Tried.complete,
    "fail for good": Tried.fail,
    "fail, retry": Tried.release,
    "rescue": Tried.die,
    "end not seen": Tried.doubt,
    "too many deaths": Tried.poison,
    "settle as done": lambda it: it.settle(State.COMPLETED),
    "settle as failed": lambda it: it.settle(State.FAILED),
    "rerun, reopen": Tried.free,
    "time passes": Tried.wait,
}


def arrows() -> Arrows:
    """Every move from every state that leads to another one."""
    found = dict[tuple[str, str], tuple[str, ...]]()
    for state, way in WAYS.items():
        for name, move in MOVES.items():
            tried = Tried()
            way(tried)
            assert tried.state == state
            move(tried)
            if tried.state != state:
                found[state, tried.state] = (*found.get((state, tried.state), ()), name)
    return found


PLACES: Final = {
    NOTHING: (90, 200),
    "claimed": (330, 200),
    "released": (330, 50),
    "completed": (690, 90),
    "failed": (690, 310),
    "unknown": (330, 350),
    "poisoned": (90, 350),
}
WIDE, HIGH = 110, 36
AT: Final = 0.36
"""How far along its arrow a label stands: nearer to its start, so that two of one pair do not meet."""


def picture(found: Arrows) -> str:
    """The picture as SVG; a line goes from the middle of a box to the middle of the other, and bends to the right."""
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 410" font-family="sans-serif" font-size="11">',
        "<title>The states of an entry, and what leads from one to the other</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        '<path d="M0 0 8 4 0 8z" fill="#666"/></marker></defs>',
        '<rect width="800" height="410" fill="#fff"/>',
    ]
    shown = {pair: names for pair, names in found.items() if pair[1] != NOTHING}
    parts += [_line(*pair) for pair in shown]
    parts += [_box(state) for state in PLACES]
    parts += [_label(*pair, names) for pair, names in shown.items()]
    return "\n".join([*parts, "</svg>", ""])


def _bent(start: str, end: str, at: float) -> tuple[float, float]:
    (x0, y0), (x2, y2) = PLACES[start], PLACES[end]
    x1, y1 = (x0 + x2) / 2 - (y2 - y0) * 0.22, (y0 + y2) / 2 + (x2 - x0) * 0.22
    x = (1 - at) ** 2 * x0 + 2 * at * (1 - at) * x1 + at**2 * x2
    y = (1 - at) ** 2 * y0 + 2 * at * (1 - at) * y1 + at**2 * y2
    return x, y


def _outside(state: str, point: tuple[float, float]) -> bool:
    x, y = PLACES[state]
    return abs(point[0] - x) > WIDE / 2 or abs(point[1] - y) > HIGH / 2


def _line(start: str, end: str) -> str:
    curve = [_bent(start, end, step / 60) for step in range(61)]
    seen = [point for point in curve if _outside(start, point) and _outside(end, point)]
    path = " ".join(f"{x:.0f},{y:.0f}" for x, y in seen)
    return f'<polyline points="{path}" fill="none" stroke="#666" marker-end="url(#tip)"/>'


def _box(state: str) -> str:
    x, y = PLACES[state]
    fill = {NOTHING: "#fff", "unknown": "#fde8d0", "poisoned": "#fde8d0"}.get(state, "#e3eefb")
    word = "no entry" if state == NOTHING else state
    return (
        f'<rect x="{x - WIDE / 2:.0f}" y="{y - HIGH / 2:.0f}" width="{WIDE}" height="{HIGH}" rx="7" fill="{fill}" '
        f'stroke="#456"/><text x="{x}" y="{y + 5}" font-size="14" text-anchor="middle">{word}</text>'
    )


def _label(start: str, end: str, names: tuple[str, ...]) -> str:
    x, y = _bent(start, end, AT)
    lines = "".join(f'<tspan x="{x:.0f}" dy="{12 if at else 0}">{name}</tspan>' for at, name in enumerate(names))
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="middle" paint-order="stroke" stroke="#fff" stroke-width="4">'
        f"{lines}</text>"
    )


def table(found: Arrows) -> list[str]:
    """The rows of the page's table."""
    return [f"| {start} | {', '.join(names)} | {end} |" for (start, end), names in found.items()]


if __name__ == "__main__":
    PICTURE.write_text(picture(arrows()))
