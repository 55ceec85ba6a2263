"""What a delivery does after its attempt, or instead of one, as `app.endings`, `app.call` and Celery's tracer do it."""

from collections.abc import Iterator
from typing import assert_never

from effectonce.domain.claims import Busy, Continued, Entry, Held, Poison, Replay, Reused, State, Verdict
from tests.model.games import Ending, Game, Rule
from tests.model.ledger import DONE, OPEN, is_locked
from tests.model.worlds import (
    IDLE,
    Answer,
    Hand,
    Message,
    Move,
    Replacement,
    Stage,
    World,
    spent,
    with_hand,
    with_story,
)


def refused(game: Game, world: World, at: int, verdict: Verdict) -> Move:
    """Go where the product's verdict sends this delivery."""
    match verdict:
        case Busy():
            return _busy(game, world, at, verdict)
        case Replay(entry=entry):
            return _replay(game, world, at, entry)
        case Continued():
            return at, "finds it done and continued: Ignore", acknowledging(world, at)
        case Poison(entry=entry):
            hand = world.hands[at]._replace(stage=Stage.POISONING, fence=_fence(entry), attempt=_attempt(entry))
            return at, "finds that it killed too many", with_hand(world, at, hand)
        case Held():
            return at, "finds it held, and keeps its message there", _answered(world, at, Answer.HELD, Stage.ENDING)
        case Reused():
            return at, "finds the key reused", _answered(world, at, Answer.FAILURE, Stage.ENDING)
    assert_never(verdict)


def _busy(game: Game, world: World, at: int, busy: Busy) -> Move:
    own = busy.own and game.keeps(Rule.OWN_IS_DEFERRED)
    if own or game.continues or not game.skips:
        return at, "is busy", deferring(world, at)
    skipped = _answered(world, at, Answer.REVOKED, Stage.ENDING)
    if busy.own and not world.effects:
        skipped = skipped._replace(wrong="NoSelfDuplicate: a message was skipped because of itself")
    return at, "is busy, and skipped", skipped


def _replay(game: Game, world: World, at: int, entry: Entry) -> Move:
    hand, record = world.hands[at], world.record
    assert record is not None
    own = (record.who, record.nesting) == (hand.message.who, hand.message.nesting)
    if not world.effects:
        world = world._replace(wrong="NoSelfDuplicate: a delivery was answered by an effect that is not done")
    if entry.result_kept:
        return at, "replays", owing(game, world, at, attempt=record.attempt, marks=own and game.continues)
    if entry.continued and not entry.handed_over:
        return at, "replays what ended by Ignore", acknowledging(world, at)
    first = world.stories[record.who - 1]
    if entry.handed_over and first.answer is not Answer.SUCCESS:
        return at, "waits for the replacement's result", deferring(world, at)
    if first.answer is Answer.SUCCESS:
        done = owing(game, world, at, attempt=record.attempt, marks=own and game.continues)
        return at, "replays the first one's stored result", done
    return at, "finds that the result was not kept", _only(world, at, Stage.GIVING_UP)


def deferring(world: World, at: int) -> World:
    """Put the delivery off; the copy goes out next."""
    return _only(world, at, Stage.DEFERRING)


def fenced(game: Game, world: World, at: int) -> World:
    """End a holder that slept past its claim."""
    return deferring(world, at) if game.keeps(Rule.FENCED_DEFERS) else acknowledging(world, at)


def ignored_as_stale(world: World, at: int) -> World:
    """End a delivery that a mutant takes for an older one than what is stored."""
    wrong = "" if world.effects else "NoSelfDuplicate: a message was ignored as stale because of its own retry"
    return acknowledging(world, at)._replace(wrong=wrong)


def owing(game: Game, world: World, at: int, *, attempt: int, marks: bool) -> World:
    """Owe the continuation of a settled effect."""
    stage = Stage.OWES if game.continues else Stage.LINKED
    hand = _bare(world.hands[at], stage)._replace(attempt=attempt if marks else 0, marks=marks)
    return with_hand(world, at, hand)


def rejected(game: Game, world: World, at: int) -> World:
    """Give the message back: `Reject(requeue=True)`."""
    return with_hand(game.broker.requeued(world, world.hands[at].token), at, IDLE)


def deferred(game: Game, world: World, at: int) -> Iterator[Move]:
    """Publish the copy; a mutant acknowledges first, or does not wait for the broker to say that it has it."""
    if not game.keeps(Rule.COPY_BEFORE_ACK):
        acked = game.broker.acked(world, world.hands[at])
        yield at, "acknowledges before the copy is out", _only(acked, at, Stage.ACKED_FIRST)
        return
    yield at, "publishes a copy", acknowledging(_copied(game, world, at), at)
    if world.budget.refusals:
        refusal = spent(world, "refusals")
        if game.keeps(Rule.COPY_IS_CONFIRMED):
            yield at, "cannot publish the copy, and gives the message back", rejected(game, refusal, at)
            told = rejected(game, _copied(game, refusal, at), at)
            yield at, "publishes a copy, is not told, and gives the message back", told
        else:
            yield at, "publishes a copy that is lost on its connection", acknowledging(refusal, at)


def acked_first(game: Game, world: World, at: int) -> Iterator[Move]:
    """Publish the copy of a delivery that is acknowledged already."""
    yield at, "publishes a copy", with_hand(_copied(game, world, at), at, IDLE)


def _copied(game: Game, world: World, at: int) -> World:
    old = world.hands[at].message
    copy = Message(
        who=old.who,
        deferrals=1,
        retries=old.retries,
        reenter=old.reenter,
        nesting=old.nesting,
        expires=not game.keeps(Rule.COPY_HAS_NO_EXPIRY),
    )
    return game.broker.published(world, copy)


def owes(game: Game, world: World, at: int) -> Iterator[Move]:
    """Send the links; one that cannot be sent gives the message back."""
    message = world.hands[at].message
    story = world.stories[message.who - 1]
    again = story.links if story.links and game.keeps(Rule.LINKS_ARE_FROZEN) else story.links + 1
    linked = with_story(_only(world, at, Stage.LINKED, keep=True), message.who, story._replace(links=min(again, 2)))
    if game.ending is Ending.REPLACE and all(story.replacement is not Replacement.DONE for story in world.stories):
        linked = linked._replace(wrong="NoLoss: a link ran without the replacement's result")
    yield at, "sends the link", linked
    if world.budget.refusals:
        yield at, "cannot send the link", _undispatched(game, spent(world, "refusals"), at)
        yield at, "sends the link, and is not told", _undispatched(game, spent(linked, "refusals"), at)


def linked(game: Game, world: World, at: int) -> Iterator[Move]:
    """Store SUCCESS; without a chord that is the last of the continuation."""
    stage = Stage.STORED if game.chord else Stage.COUNTED
    answer = Answer.FAILURE if game.ending is Ending.REMEMBERED else Answer.SUCCESS
    yield at, f"stores {answer.name}", _answered(world, at, answer, stage, keep=True)
    if world.budget.unstored:
        unstored = spent(world, "unstored")
        put_off = game.keeps(Rule.BACKEND_AWAY_DEFERS) and game.keeps(Rule.FAILED_DISPATCH_COMES_BACK)
        yield at, "cannot store it", deferring(unstored, at) if put_off else _undispatched(game, unstored, at)


def _undispatched(game: Game, world: World, at: int) -> World:
    """Give the message of an effect back that is done; a mutant takes it for a failure."""
    back = game.keeps(Rule.FAILED_DISPATCH_COMES_BACK)
    return rejected(game, world, at) if back else _only(world, at, Stage.GIVING_UP)


def stored(_: Game, world: World, at: int) -> Iterator[Move]:
    """Count this part of its chord."""
    message = world.hands[at].message
    story = world.stories[message.who - 1]._replace(counted=True)
    yield at, "counts its part of the chord", with_story(_only(world, at, Stage.COUNTED, keep=True), message.who, story)


def counted(_: Game, world: World, at: int) -> Iterator[Move]:
    """Mark the entry as continued, if this is worth a mark and the entry is still the attempt's."""
    hand, record = world.hands[at], world.record
    done = acknowledging(world, at)
    if hand.marks and record is not None and record.attempt == hand.attempt and record.state in DONE:
        yield at, "marks it as continued", done._replace(record=record._replace(continued=True))
    else:
        yield at, "has nothing to mark", done


def failed(_: Game, world: World, at: int) -> Iterator[Move]:
    """Store the FAILURE of a body and fire the error links."""
    yield at, "stores FAILURE, and the error links run", _answered(world, at, Answer.FAILURE, Stage.ENDING)


def giving_up(game: Game, world: World, at: int) -> Iterator[Move]:
    """Store FAILURE though no body failed: allowed only where nothing goes on from it, to say what is lost."""
    done = _answered(world, at, Answer.FAILURE, Stage.ENDING)
    committing = world.orphan is not None and world.orphan.record is not None
    if (world.effects or committing) and (game.continues or game.errbacks):
        done = done._replace(wrong="NoFalseFailure: FAILURE and error links for work that is done")
    yield at, "stores FAILURE, and the error links run", done


def poisoning(game: Game, world: World, at: int) -> Iterator[Move]:
    """Set the entry aside with the message, if nothing has moved since it was read."""
    if not _is_poisonable(game, world, world.hands[at]):
        yield at, "finds that the entry has moved", deferring(world, at)
        return
    record = world.record
    assert record is not None
    set_aside = world._replace(record=record._replace(state=State.POISONED, live=False))
    if world.effects:
        set_aside = set_aside._replace(wrong="NoLoss: an effect that is done was set aside")
    elif is_locked(game, world):
        set_aside = set_aside._replace(wrong="NoLoss: the work of a living holder was set aside")
    yield at, "poisons the entry", _answered(set_aside, at, Answer.HELD, Stage.ENDING)


def _is_poisonable(game: Game, world: World, hand: Hand) -> bool:
    record = world.record
    if record is None or (record.fence, record.attempt) != (hand.fence, hand.attempt):
        return False
    if game.keeps(Rule.LIVING_IS_NOT_POISONED) and is_locked(game, world):
        return False
    return record.state in OPEN or not game.keeps(Rule.DONE_IS_NOT_POISONED)


def ending(game: Game, world: World, at: int) -> Iterator[Move]:
    """Acknowledge."""
    yield at, "acknowledges", with_hand(game.broker.acked(world, world.hands[at]), at, IDLE)


def _answered(world: World, at: int, answer: Answer, stage: Stage, *, keep: bool = False) -> World:
    who = world.hands[at].message.who
    story = world.stories[who - 1]._replace(answer=answer)
    return with_story(_only(world, at, stage, keep=keep), who, story)


def acknowledging(world: World, at: int) -> World:
    """Only the acknowledgement is left."""
    return _only(world, at, Stage.ENDING)


def _only(world: World, at: int, stage: Stage, *, keep: bool = False) -> World:
    """The world with this hand at *stage*; without *keep* it forgets its claim."""
    hand = world.hands[at]
    return with_hand(world, at, hand._replace(stage=stage) if keep else _bare(hand, stage))


def _bare(hand: Hand, stage: Stage) -> Hand:
    return IDLE._replace(stage=stage, message=hand.message, token=hand.token)


def _fence(entry: Entry) -> int:
    return entry.fence


def _attempt(entry: Entry) -> int:
    return int.from_bytes(entry.attempt, "big")
