"""All steps of a world: those of its workers, of the world itself, and the faults that may befall it."""

from collections.abc import Callable, Iterator
from typing import Final

from tests.model import attempts, endings, outages, unwinding
from tests.model.faults import killed, time_passes
from tests.model.games import Game
from tests.model.worlds import IDLE, Hand, Message, Move, Stage, Story, World, named, with_hand

STEPS: Final[dict[Stage, Callable[[Game, World, int], Iterator[Move]]]] = {
    Stage.RECEIVED: attempts.received,
    Stage.STANDING: attempts.claiming,
    Stage.UNDONE: attempts.undone,
    Stage.UNWRITTEN: outages.unwritten,
    Stage.CLAIMED: attempts.entered,
    Stage.IN_BODY: attempts.body,
    Stage.ACTED: attempts.settled,
    Stage.DOUBT: outages.in_doubt,
    Stage.GIVING_BACK: attempts.given_back,
    Stage.DEFERRING: endings.deferred,
    Stage.ACKED_FIRST: endings.acked_first,
    Stage.RETRYING: unwinding.retrying,
    Stage.RETRY_SENT: unwinding.retry_sent,
    Stage.RETRY_STORED: unwinding.retry_stored,
    Stage.FAILING: unwinding.failing,
    Stage.FAILED: endings.failed,
    Stage.OWES: endings.owes,
    Stage.LINKED: endings.linked,
    Stage.STORED: endings.stored,
    Stage.COUNTED: endings.counted,
    Stage.GIVING_UP: endings.giving_up,
    Stage.POISONING: endings.poisoning,
    Stage.ENDING: endings.ending,
}


def start(game: Game) -> World:
    """Messages in the queue, workers idle, nothing recorded."""
    world = World(
        queue=(),
        unacked=(),
        record=None,
        hands=(IDLE,) * game.workers,
        orphan=None,
        effects=0,
        shown=(),
        stories=(Story(),) * game.messages,
        budget=game.budget,
    )
    for who in range(1, game.messages + 1):
        world = game.broker.published(world, Message(who=who))
    return world


def steps(game: Game, world: World) -> Iterator[Move]:
    """What goes on by itself."""
    yield from _receptions(game, world)
    for at, hand in enumerate(world.hands):
        if hand.stage is not Stage.IDLE:
            yield from STEPS[hand.stage](game, world, at)
        if game.deadly and hand.stage is Stage.IN_BODY:
            yield from killed(game, world, at)
    yield from time_passes(game, world)


def _receptions(game: Game, world: World) -> Iterator[Move]:
    """Any idle worker takes any message; workers are alike, so the first idle one stands for all."""
    at = next((at for at, hand in enumerate(world.hands) if hand.stage is Stage.IDLE), None)
    if at is None:
        return
    for message in sorted(set(world.queue)):
        given, token, taken = game.broker.received(world, message)
        if message.expires:
            yield at, "revokes a message that has expired", game.broker.acked(given, Hand(token=token))
        holder = IDLE._replace(stage=Stage.RECEIVED, message=taken, token=token)
        yield at, f"receives {named(taken)}", with_hand(given, at, holder)
