"""The model itself: what it leaves out loses nothing, what it tells can be read, and it sees the dead ends."""

from collections.abc import Callable, Iterator

import pytest

from tests.model.brokers import Redis
from tests.model.checker import TooMany, walk
from tests.model.faults import faults
from tests.model.games import Ending, Game, Rule
from tests.model.protocol import start, steps
from tests.model.symmetry import canonical
from tests.model.worlds import Budget, Move, World


def _all_worlds(game: Game, *, same: Callable[[Game, World], World]) -> set[World]:
    first = same(game, start(game))
    seen, waiting = {first}, [first]
    while waiting:
        for _, _, after in _moves(game, waiting.pop()):
            world = same(game, after)
            if world not in seen:
                seen.add(world)
                waiting.append(world)
    return seen


def _moves(game: Game, world: World) -> Iterator[Move]:
    yield from steps(game, world)
    yield from faults(game, world)


def _as_it_is(_: Game, world: World) -> World:
    return world


@pytest.mark.parametrize(
    "options",
    [
        {"budget": Budget(kills=1, sleeps=1)},
        {"budget": Budget(early=1, outages=1)},
        {"budget": Budget(retries=1, kills=1)},
        {"budget": Budget(kills=1, retries=1), "lost_retry": True},
        {"messages": 2},
        {"ending": Ending.REPLACE_SAME_KEY},
        {"deadly": True, "most": 2, "vanishes": True},
    ],
    ids=str,
)
def test_what_worlds_have_in_common_loses_none_of_them(game: Callable[..., Game], options: dict[str, object]) -> None:
    """The worlds found by their representatives are the representatives of all that there are, at least as many."""
    playing = game(**options)
    everything = _all_worlds(playing, same=_as_it_is)
    found = _all_worlds(playing, same=canonical)
    assert {canonical(playing, world) for world in everything} == found
    assert len(everything) > len(found)


def test_a_trace_names_who_does_what_and_what_stands_then() -> None:
    """The shortest one, with names that stay."""
    game = Game(broker=Redis(), transactional=False, budget=Budget(kills=1)).without(Rule.UNFINISHED_GOES_ON)
    lines = walk(game).trace.splitlines()
    assert lines[0] == f"A  {'receives m1':<48} [no entry; queue: -; unacked: m1]"
    assert lines[-1] == f"A  {'acknowledges':<48} [completed fence 1 by m1; queue: -; unacked: -]"
    assert len(lines) == 8


def test_a_world_that_can_only_go_round_is_seen() -> None:
    """A copy that waits for a claim which nobody ends is put off for ever, and that is no end."""
    game = Game(broker=Redis(), transactional=True, vanishes=True, budget=Budget(kills=1)).without(Rule.SESSIONS_END)
    seen = walk(game)
    assert seen.wrong == "NoStuck: no road leads to an end from here"
    assert "vanishes" in seen.trace


def test_a_walk_that_grows_too_large_says_so() -> None:
    with pytest.raises(TooMany):
        walk(Game(broker=Redis(), transactional=True, budget=Budget(kills=2, early=1)), most=100)
