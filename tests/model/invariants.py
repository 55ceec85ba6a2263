"""What must hold in every world, and what at the end of every road."""

from effectonce.domain.claims import State
from tests.model.games import Ending, Game
from tests.model.worlds import Answer, Replacement, Stage, World

BELIEVING = frozenset({Stage.IN_BODY, Stage.ACTED})
CLOSED = frozenset({Answer.FAILURE, Answer.HELD, Answer.REVOKED})


def broken(game: Game, world: World) -> str:
    """Name the invariant that this world breaks; empty if it breaks none."""
    if world.wrong:
        return world.wrong
    if world.effects > 1:
        return "NoDoubleEffect: the effect was recorded twice"
    if sum(hand.stage in BELIEVING and (hand.trusted or not hand.committed) for hand in world.hands) > 1:
        return "NoDoubleEffect: two holders both believe in their claims"
    if len(world.shown) > 1:
        return "NoDoubleEffect: the outside was shown two idempotency keys"
    if any(story.links > 1 for story in world.stories):
        return "NoDoubleEffect: a continuation went out under two ids"
    return next((f"NoLoss: m{who} is gone" for who in _open(game, world) if not _is_somewhere(world, who)), "")


def unfinished(game: Game, world: World) -> str:
    """Name what is wrong with a world in which nothing can happen any more."""
    if any(hand.stage is not Stage.IDLE for hand in world.hands) or world.queue or world.unacked:
        return "NoStuck: a message or a worker waits for ever"
    if world.orphan is not None or (world.record is not None and world.record.state is State.CLAIMED):
        return "NoStuck: the key is claimed for ever"
    left = next(iter(_open(game, world)), 0)
    if left:
        return f"NoLoss: m{left} never came to an end"
    if not world.effects and not any(story.answer in CLOSED for story in world.stories):
        return "NoLoss: the effect never took place"
    return ""


def _open(game: Game, world: World) -> list[int]:
    """The ids that still owe something: the effect, the continuation or the answer."""
    return [who for who in range(1, len(world.stories) + 1) if _owes(game, world, who)]


def _owes(game: Game, world: World, who: int) -> bool:
    story = world.stories[who - 1]
    if game.ending is Ending.IGNORE:
        return not world.effects and story.answer not in CLOSED
    if game.ending is Ending.REMEMBERED:
        return story.answer is Answer.PENDING or (game.continues and not story.links)
    if story.answer in CLOSED:
        return False
    return story.answer is Answer.PENDING or (game.continues and not story.links) or (game.chord and not story.counted)


def _is_somewhere(world: World, who: int) -> bool:
    if world.stories[who - 1].replacement is Replacement.SENT:
        return True
    return any(each.who == who for each in world.queue) or any(each.who == who for _, each in world.unacked)
