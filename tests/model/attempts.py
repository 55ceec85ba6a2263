"""The steps of one attempt, from the claim to the settlement, as `LeasedAttempt` and `TransactionalAttempt` take them.

Each function is one step that is atomic in the product: one round trip to the ledger, one message to the broker, or
the body itself. What lies between two of them is where a worker may die.
"""

from collections.abc import Iterator
from functools import cache

from effectonce.domain.claims import Granted, Outcome, State
from effectonce.runtime.plan import Encoded, Plan
from tests.model import endings
from tests.model.games import Ending, Game, Rule
from tests.model.ledger import (
    DONE,
    ask,
    can_be_claimed,
    claim_of,
    claimed,
    delivery,
    ended,
    holds,
    idempotency_key,
    is_locked,
    next_attempt,
    verdict_on,
)
from tests.model.unwinding import let_go
from tests.model.worlds import Hand, Message, Move, Record, Replacement, Stage, World, spent, with_hand, with_story


def received(game: Game, world: World, at: int) -> Iterator[Move]:
    """Ask for the key: with a committed claim, or as the first statement of the work's own transaction."""
    hand = world.hands[at]
    if _is_stale(game, world, hand):
        yield at, "ignores a copy as stale", endings.ignored_as_stale(world, at)
    elif claims_committed(game, hand):
        yield from claiming(game, world, at)
    else:
        yield _entered_first(game, world, at)


def _is_stale(game: Game, world: World, hand: Hand) -> bool:
    record = world.record
    wrong = not game.keeps(Rule.RETRY_IS_SENT_FIRST)
    return wrong and record is not None and record.who == hand.message.who and hand.message.retries < record.retries


def claims_committed(game: Game, hand: Hand) -> bool:
    """Tell whether this delivery commits a claim before its body."""
    flags = game.broker.flags or not game.keeps(Rule.SILENCE_COUNTS_ALL)
    standing = hand.stage is Stage.STANDING
    return not game.transactional or standing or delivery(hand.message, flags=flags).may_repeat


def claiming(game: Game, world: World, at: int) -> Iterator[Move]:
    """Commit a claim."""
    hand = world.hands[at]
    answer = ask(game, world, hand.message)
    if not isinstance(answer, Granted):
        yield endings.refused(game, world, at, verdict_on(game, world.record, hand.message))
        return
    record = claimed(game, world.record, answer, hand.message)
    stage = Stage.CLAIMED if game.transactional else Stage.IN_BODY
    holder = hand._replace(stage=stage, fence=record.fence, attempt=record.attempt, committed=True, trusted=True)
    label = "claims, taking over" if answer.takeover else "claims"
    yield at, label, with_hand(world._replace(record=record), at, holder)


def _entered_first(game: Game, world: World, at: int) -> Move:
    hand = world.hands[at]
    if can_be_claimed(game, world.record, hand.message):
        return at, "meets an entry that was let go", with_hand(world, at, hand._replace(stage=Stage.STANDING))
    if is_locked(game, world) or world.record is not None:
        return endings.refused(game, world, at, verdict_on(game, world.record, hand.message))
    answer = ask(game, world, hand.message)
    assert isinstance(answer, Granted)
    holder = hand._replace(stage=Stage.IN_BODY, fence=answer.fence, attempt=next_attempt(world))
    return at, "begins its transaction with the key", with_hand(world, at, holder)


def entered(game: Game, world: World, at: int) -> Iterator[Move]:
    """Take the key's lock under a committed claim; nothing else is looked at."""
    hand = world.hands[at]
    if is_locked(game, world):
        yield at, "finds the key locked", with_hand(world, at, hand._replace(stage=Stage.GIVING_BACK))
    else:
        yield at, "begins its transaction", with_hand(world, at, hand._replace(stage=Stage.IN_BODY))


def given_back(game: Game, world: World, at: int) -> Iterator[Move]:
    """Release the claim whose lock another one has, and be busy."""
    hand = world.hands[at]
    yield at, "gives its claim back", endings.deferring(let_go(game, world, hand), at)


def body(game: Game, world: World, at: int) -> Iterator[Move]:
    """Run the body; for an effect outside, that shows there at once."""
    hand = world.hands[at]
    if game.deadly:
        return
    if _replaces(game, hand):
        yield at, "sends its replacement", with_hand(_replaced(game, world, hand), at, hand._replace(stage=Stage.ACTED))
    elif game.transactional and game.ending is Ending.REMEMBERED:
        failed = with_hand(world, at, hand._replace(stage=Stage.UNDONE))
        yield at, "fails, to be remembered: rolled back", failed
    elif game.transactional:
        yield from settled(game, world, at)
    else:
        shown = {*world.shown, idempotency_key(game, hand)}
        acted = with_hand(world, at, hand._replace(stage=Stage.ACTED))
        yield at, "acts outside", acted._replace(shown=tuple(sorted(shown)))
    yield from _ends_badly(game, world, at)


def undone(game: Game, world: World, at: int) -> Iterator[Move]:
    """Begin the transaction again to write the failure down; if that is refused, the body runs again."""
    hand = world.hands[at]
    if is_locked(game, world) or (not hand.committed and world.record is not None):
        again = Stage.CLAIMED if hand.committed else Stage.RECEIVED
        yield at, "cannot have the key back, and begins again", with_hand(world, at, hand._replace(stage=again))
    else:
        yield at, "has the key back", with_hand(world, at, hand._replace(stage=Stage.ACTED))


def _ends_badly(game: Game, world: World, at: int) -> Iterator[Move]:
    hand, budget = world.hands[at], world.budget
    if budget.retries:
        retrying = with_hand(spent(world, "retries"), at, hand._replace(stage=Stage.RETRYING))
        yield at, "is to be retried: rolled back", retrying
    if budget.failures:
        failing = with_hand(spent(world, "failures"), at, hand._replace(stage=Stage.FAILING))
        yield at, "fails: rolled back", failing


def _replaces(game: Game, hand: Hand) -> bool:
    return game.ending in {Ending.REPLACE, Ending.REPLACE_SAME_KEY} and not hand.message.nesting


def _replaced(game: Game, world: World, hand: Hand) -> World:
    who = hand.message.who
    if game.ending is Ending.REPLACE_SAME_KEY:
        return game.broker.published(world, Message(who=who, nesting=1))
    story = world.stories[who - 1]
    return with_story(world, who, story._replace(replacement=max(story.replacement, Replacement.SENT)))


def settled(game: Game, world: World, at: int) -> Iterator[Move]:
    """Write the outcome if the claim still holds, in one statement or as the last one of the transaction."""
    hand, record = world.hands[at], world.record
    outcome = outcome_of(game, hand)
    if game.transactional and not hand.committed:
        yield _settled(game, world, at, uncommitted(hand, outcome), outcome)
    elif record is not None and record.state is State.CLAIMED and holds(game, record, hand):
        yield _settled(game, world, at, ended(record, outcome), outcome)
    elif not game.transactional and is_ignored(game, hand) and not game.keeps(Rule.FENCED_IGNORE_DEFERS):
        yield at, "is fenced, and ends by Ignore", endings.acknowledging(world, at)
    else:
        yield at, "is fenced", endings.fenced(game, world, at)


def _settled(game: Game, world: World, at: int, record: Record, outcome: Outcome) -> Move:
    hand = world.hands[at]
    wrong = "" if record.attempt == hand.attempt else "NoDoubleEffect: a claim was settled that another attempt holds"
    done = world._replace(record=record, effects=world.effects + (outcome.state in DONE), wrong=wrong)
    label = "commits" if game.transactional else "completes"
    if is_ignored(game, hand):
        return at, f"{label}, ended by Ignore", endings.acknowledging(done, at)
    return at, label, endings.owing(game, done, at, attempt=record.attempt, marks=game.continues)


def outcome_of(game: Game, hand: Hand) -> Outcome:
    """How the product writes what became of this body."""
    plan = _plan(hand.message, game.ending, hands_on=game.keeps(Rule.HANDED_ON_IS_RELEASED))
    if game.ending is Ending.REMEMBERED:
        return plan.failed(ValueError())
    if is_ignored(game, hand):
        return plan.ended_by_ignore() if game.keeps(Rule.REPLACED_IS_CONTINUED) else Outcome(state=State.COMPLETED)
    goes_on = game.continues and game.keeps(Rule.CONTINUED_RESULT_IS_KEPT)
    goes_on |= game.errbacks and game.keeps(Rule.ERRBACKS_KEEP_RESULT)
    return plan.completed(Encoded(payload=b"paid", kept=goes_on or not game.large))


@cache
def _plan(message: Message, ending: Ending, *, hands_on: bool) -> Plan:
    return Plan(
        claim=claim_of(message, attempt=0, most=0),
        delivery=delivery(message, flags=True),
        encode=lambda result: Encoded(payload=result),
        encode_failure=lambda _: b"failed",
        remember=(ValueError,),
        ignored=(),
        controls=(),
        replaced=lambda: ending is not Ending.IGNORE,
        handed_on=lambda: ending is Ending.REPLACE_SAME_KEY and hands_on,
        emit=lambda _: None,
        patience=0.0,
    )


def is_ignored(game: Game, hand: Hand) -> bool:
    """Tell whether this body ends by `Ignore`."""
    return _replaces(game, hand) or game.ending is Ending.IGNORE


def uncommitted(hand: Hand, outcome: Outcome) -> Record:
    """The entry that a first delivery inserts, and commits with its work."""
    who, nesting = hand.message.who, hand.message.nesting
    blank = Record(state=State.CLAIMED, fence=hand.fence, attempt=hand.attempt, who=who, nesting=nesting)
    return ended(blank, outcome)
