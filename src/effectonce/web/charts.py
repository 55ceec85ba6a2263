"""Charts as SVG, made on the server: stacked bars a minute, with a table in words for who cannot see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from effectonce.events import Name
from effectonce.ports.history import Tally

MINUTES: Final = 60
WIDTH, HEIGHT = 720, 140
_GAP: Final = 2
_ANSWERS: Final = frozenset(
    {Name.EFFECT_REPLAYED.value, Name.EFFECT_DEFERRED.value, Name.EFFECT_SKIPPED.value, Name.EFFECT_REUSED.value}
    | {Name.EFFECT_SENT_BEFORE.value}
)
_OUTCOMES: Final = {
    Name.EFFECT_COMPLETED.value: "completed",
    Name.EFFECT_FAILED.value: "failed",
    Name.EFFECT_RELEASED.value: "released",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One rectangle; *series* is the number of its colour."""

    x: float
    y: float
    width: float
    height: float
    series: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: *top* is the value of its upper edge; *legend* has names and totals."""

    bars: Sequence[Bar]
    top: int
    legend: Sequence[tuple[str, int]]
    width: int = WIDTH
    height: int = HEIGHT

    @property
    def total(self) -> int:
        """All together."""
        return sum(number for _, number in self.legend)


def effects(tallies: Sequence[Tally], *, until: int) -> Chart:
    """Bodies that ended, by outcome."""
    return _stacked(
        [(each.minute, _OUTCOMES[each.name], each.number) for each in tallies if each.name in _OUTCOMES], until
    )


def duplicates(tallies: Sequence[Tally], *, until: int) -> Chart:
    """Deliveries that met an effect done or in hand, by cause."""
    found = [(each.minute, each.cause, each.number) for each in tallies if each.name in _ANSWERS and each.cause]
    return _stacked(found, until)


def _stacked(points: Sequence[tuple[int, str, int]], until: int) -> Chart:
    """Bars of the last hour; *until* is the minute at its right edge."""
    totals: dict[str, int] = {}
    minutes: dict[int, dict[str, int]] = {}
    for minute, name, number in points:
        if until - MINUTES < minute <= until:
            totals[name] = totals.get(name, 0) + number
            at = minutes.setdefault(minute, {})
            at[name] = at.get(name, 0) + number
    legend = sorted(totals.items())
    top = max((sum(each.values()) for each in minutes.values()), default=0)
    numbers = {name: at for at, (name, _) in enumerate(legend)}
    bars = [
        bar for minute, found in minutes.items() for bar in _column(found, minute - until + MINUTES - 1, top, numbers)
    ]
    return Chart(bars=bars, top=top, legend=legend)


def _column(found: Mapping[str, int], at: int, top: int, numbers: Mapping[str, int]) -> list[Bar]:
    step, floor, bars = WIDTH / MINUTES, float(HEIGHT), []
    for name in sorted(found):
        height = found[name] / top * HEIGHT
        floor -= height
        bars.append(
            Bar(
                x=round(at * step, 1),
                y=round(floor, 1),
                width=step - _GAP,
                height=round(height, 1),
                series=numbers[name],
            )
        )
    return bars
