"""Walks through all worlds of a game, breadth first, and tells the shortest way to one that breaks an invariant.

Worlds are kept as rows of numbers, one for each part: most parts are shared by many worlds, so a million of them fit
into memory. A road that can be walked without further faults must lead from every world to an end; that is asked
backwards, from the ends.
"""

from array import array
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.model.faults import faults
from tests.model.games import Game
from tests.model.invariants import broken, unfinished
from tests.model.protocol import start, steps
from tests.model.symmetry import canonical
from tests.model.worlds import NOBODY, Move, World, named

Key = tuple[int, ...]


class TooMany(Exception):
    """The game has more worlds than it was given room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """What was found. *wrong* names a broken invariant, empty if none is; *trace* is the shortest way there."""

    states: int
    ends: int
    wrong: str
    trace: str

    def __str__(self) -> str:
        return f"{self.states} states, {self.ends} ends; {self.wrong or 'nothing wrong'}\n{self.trace}"


class _Seen:
    """The worlds found so far, in the order in which they were found."""

    def __init__(self) -> None:
        self._parts: dict[Any, int] = {}
        self._values: list[Any] = []
        self._numbers: dict[Key, int] = {}
        self._keys: list[Key] = []
        self.parents = array("q")

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, world: World, parent: int) -> tuple[int, bool]:
        """The number of a world, and whether it is new."""
        key = tuple(self._part(part) for part in world)
        number = self._numbers.get(key)
        if number is not None:
            return number, False
        number = self._numbers[key] = len(self._keys)
        self._keys.append(key)
        self.parents.append(parent)
        return number, True

    def world(self, number: int) -> World:
        """The world of a number."""
        return World(*(self._values[part] for part in self._keys[number]))

    def road(self, number: int) -> list[World]:
        """The worlds from the start to this one."""
        found = [self.world(number)]
        while (number := self.parents[number]) >= 0:
            found.append(self.world(number))
        return found[::-1]

    def _part(self, value: Any) -> int:
        named = (type(value), value)
        number = self._parts.get(named)
        if number is None:
            number = self._parts[named] = len(self._values)
            self._values.append(value)
        return number


def walk(game: Game, *, most: int = 5_000_000) -> Walk:
    """Look at every world that this game can come to; stops at the first one that is wrong."""
    seen = _Seen()
    seen.add(canonical(game, start(game)), -1)
    sources, targets, ends = array("q"), array("q"), array("q")
    number = -1
    while (number := number + 1) < len(seen):
        if len(seen) > most:
            raise TooMany
        world = seen.world(number)
        wrong = broken(game, world)
        if wrong:
            return _told(game, seen, number, wrong, len(ends))
        goes_on = False
        for _, _, after in steps(game, world):
            target, _ = seen.add(canonical(game, after), number)
            sources.append(number)
            targets.append(target)
            goes_on = True
        if not goes_on:
            wrong = unfinished(game, world)
            if wrong:
                return _told(game, seen, number, wrong, len(ends))
            ends.append(number)
        for _, _, after in faults(game, world):
            seen.add(canonical(game, after), number)
    stuck = _stuck(len(seen), sources, targets, ends)
    if stuck is not None:
        return _told(game, seen, stuck, "NoStuck: no road leads to an end from here", len(ends))
    return Walk(states=len(seen), ends=len(ends), wrong="", trace="")


def _stuck(count: int, sources: "array[int]", targets: "array[int]", ends: "array[int]") -> int | None:
    """The first world from which no end can be reached without further faults."""
    before: list[list[int]] = [[] for _ in range(count)]
    for source, target in zip(sources, targets, strict=True):
        before[target].append(source)
    good = bytearray(count)
    waiting = deque(ends)
    for end in ends:
        good[end] = 1
    while waiting:
        for source in before[waiting.popleft()]:
            if not good[source]:
                good[source] = 1
                waiting.append(source)
    return next((number for number in range(count) if not good[number]), None)


def _told(game: Game, seen: _Seen, number: int, wrong: str, ends: int) -> Walk:
    return Walk(states=len(seen), ends=ends, wrong=wrong, trace="\n".join(_trace(game, seen.road(number))))


def _trace(game: Game, road: list[World]) -> Iterator[str]:
    """The steps of a road, with workers that keep their names, found by walking it once more without sorting."""
    world = start(game)
    for target in road[1:]:
        at, label, world = next(
            (at, label, after) for at, label, after in _all(game, world) if canonical(game, after) == target
        )
        yield f"{'ABCDEFGH'[at] if at != NOBODY else '-'}  {label:<48} {_shown(world)}".rstrip()


def _all(game: Game, world: World) -> Iterator[Move]:
    yield from steps(game, world)
    yield from faults(game, world)


def _shown(world: World) -> str:
    record = world.record
    entry = "no entry"
    if record is not None:
        lease = "" if record.live or record.state != 1 else ", lease over"
        entry = f"{record.state.name.lower()} fence {record.fence} by m{record.who}{lease}"
        entry += ", continued" if record.continued else ""
    queue = ", ".join(named(message) for message in world.queue) or "-"
    out = ", ".join(named(message) for _, message in world.unacked) or "-"
    return f"[{entry}; queue: {queue}; unacked: {out}]"
