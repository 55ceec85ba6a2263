"""How an attempt ends whose body asked for a retry or failed; its transaction is rolled back by then."""

from collections.abc import Iterator

from effectonce.domain.claims import State
from tests.model import endings
from tests.model.games import Game, Rule
from tests.model.ledger import OPEN, holds, next_attempt, released
from tests.model.worlds import Hand, Message, Move, Record, Stage, World, spent, with_hand


def retrying(game: Game, world: World, at: int) -> Iterator[Move]:
    """Publish the retry with the fence of the attempt; a mutant stores its number and lets go first."""
    hand = world.hands[at]
    if not game.keeps(Rule.RETRY_IS_SENT_FIRST):
        stored = _stored_retry(game, world, hand)
        yield at, "stores the retry's number", with_hand(stored, at, hand._replace(stage=Stage.RETRY_STORED))
    elif game.transactional and not game.keeps(Rule.RETRY_IS_SENT_OUTSIDE):
        yield at, "has sent its retry in what was rolled back", _sent(world, at)
    else:
        yield at, "publishes its retry", _sent(_published_retry(game, world, hand), at)
    if world.budget.refusals:
        refusal = spent(world, "refusals")
        untold = _published_retry(game, refusal, hand)
        yield at, "cannot publish its retry: gives the message back", _given_back(game, refusal, at)
        yield at, "publishes its retry, is not told, and gives the message back", _given_back(game, untold, at)


def _given_back(game: Game, world: World, at: int) -> World:
    return endings.rejected(game, let_go(game, world, world.hands[at]), at)


def retry_sent(game: Game, world: World, at: int) -> Iterator[Move]:
    """Let the key go to the retry; fenced or not, the retry's message is out."""
    hand = world.hands[at]
    free = let_go(game, world, hand)
    yield at, "releases the key to its retry", endings.acknowledging(free, at)


def retry_stored(game: Game, world: World, at: int) -> Iterator[Move]:
    """Publish a retry whose number is stored already."""
    hand = world.hands[at]
    sent = _published_retry(game, world, hand)
    yield at, "publishes its retry", endings.acknowledging(sent, at)


def _sent(world: World, at: int) -> World:
    return with_hand(world, at, world.hands[at]._replace(stage=Stage.RETRY_SENT))


def _published_retry(game: Game, world: World, hand: Hand) -> World:
    fence = hand.fence if hand.committed else 0
    old = hand.message
    return game.broker.published(
        world, Message(who=old.who, nesting=old.nesting, retries=old.retries + 1, reenter=fence)
    )


def _stored_retry(game: Game, world: World, hand: Hand) -> World:
    record = world.record or Record(
        state=State.RELEASED, fence=next_attempt(world), attempt=hand.attempt, who=hand.message.who
    )
    return let_go(game, world._replace(record=record._replace(retries=hand.message.retries + 1)), hand)


def failing(game: Game, world: World, at: int) -> Iterator[Move]:
    """Let the key go after a failure; one that is fenced by now has no say over the effect."""
    hand, record = world.hands[at], world.record
    if not hand.committed or (record is not None and record.state in OPEN and holds(game, record, hand)):
        free = let_go(game, world, hand, reset=True)
        yield at, "releases the key after its failure", with_hand(free, at, hand._replace(stage=Stage.FAILED))
    elif game.keeps(Rule.FENCED_ERROR_DEFERS if game.ours else Rule.FENCED_FAILURE_DEFERS):
        yield at, "is fenced", endings.deferring(world, at)
    else:
        false = world.effects or (record is not None and record.state is State.CLAIMED)
        wrong = "NoFalseFailure: FAILURE by a fenced holder, of an effect that another one has" if false else ""
        failed = with_hand(world, at, hand._replace(stage=Stage.FAILED))
        yield at, "is fenced, and fails all the same", failed._replace(wrong=wrong)


def let_go(game: Game, world: World, hand: Hand, *, reset: bool = False) -> World:
    """Release the claim of this hand, if nobody has had the entry since; one that was let go for it stays so."""
    record = world.record
    if record is None or record.state not in OPEN or not hand.committed or not holds(game, record, hand):
        return world
    wrong = "" if record.attempt == hand.attempt else "NoDoubleEffect: a claim was released that another attempt holds"
    return world._replace(record=released(game, record, reset=reset), wrong=wrong)
