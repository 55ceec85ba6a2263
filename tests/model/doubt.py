"""A COMMIT whose answer is lost: the server goes on with it, or does not, and the worker asks (rule 10)."""

from collections.abc import Iterator

from effectonce.domain.claims import State
from tests.model import endings
from tests.model.attempts import outcome_of, uncommitted
from tests.model.games import Game, Rule
from tests.model.ledger import ended, holds
from tests.model.worlds import Move, Orphan, Record, Stage, World, with_hand


def in_doubt(game: Game, world: World, at: int) -> Iterator[Move]:
    """Ask a new connection whether the lost COMMIT took place: under the lock, so after the server has decided."""
    hand = world.hands[at]
    if world.orphan is None:
        record = world.record
        if record is not None and record.attempt == hand.attempt and record.state is State.COMPLETED:
            done = endings.owing(game, world, at, attempt=hand.attempt, marks=game.continues)
            yield at, "learns that it has committed", done
        else:
            yield at, "learns that it has not committed", endings.deferring(world, at)
        return
    yield at, "cannot learn in time whether it has committed", endings.deferring(world, at)
    if not game.keeps(Rule.COMMIT_IS_ASKED_UNDER_LOCK):
        failed = with_hand(world, at, hand._replace(stage=Stage.GIVING_UP))
        yield at, "sees nothing without the lock, and fails as not done", failed


def commit_lost(game: Game, world: World, at: int) -> Move:
    """The connection breaks at COMMIT, and the server goes on with it, or does not."""
    hand, record = world.hands[at], world.record
    outcome = outcome_of(game, hand)
    after: Record | None = None
    if not hand.committed:
        after = uncommitted(hand, outcome)
    elif record is not None and record.state is State.CLAIMED and holds(game, record, hand):
        after = ended(record, outcome)
    waiting = with_hand(world, at, hand._replace(stage=Stage.DOUBT))
    return at, "loses its connection at COMMIT", waiting._replace(orphan=Orphan(commits=True, record=after))
