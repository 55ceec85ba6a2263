"""What a test says of a game: that nothing is wrong in any of its worlds, or what is."""

from tests.model.checker import Walk, walk
from tests.model.games import Game


def holds(game: Game, *, at_least: int = 1) -> Walk:
    """Walk through all of it; every invariant holds, and there was as much to see as there should be."""
    seen = walk(game)
    print(f"{seen.states} states")  # noqa: T201 - shown by pytest -s
    assert not seen.wrong, f"\n{seen}"
    assert seen.ends, "no road came to an end"
    assert seen.states >= at_least, f"{seen.states} states: the model has shrunk"
    return seen


def breaks(game: Game, invariant: str) -> Walk:
    """Walk until something is wrong, and it is this."""
    seen = walk(game)
    print(f"{seen.states} states\n{seen}")  # noqa: T201 - shown by pytest -s
    assert seen.wrong.startswith(invariant), f"\n{seen}"
    return seen
