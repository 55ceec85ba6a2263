"""What may befall a world at any moment, within its budget; and what time brings by itself."""

from collections.abc import Iterator

from effectonce.domain.claims import State
from tests.model.games import Game, Rule
from tests.model.ledger import IN_TRANSACTION, holds, is_locked, released
from tests.model.outages import outages, session_ends
from tests.model.worlds import (
    IDLE,
    NOBODY,
    Answer,
    Message,
    Move,
    Orphan,
    Replacement,
    Stage,
    World,
    named,
    spent,
    with_hand,
    with_story,
)

ACTING = frozenset({Stage.IN_BODY, Stage.ACTED})
OWING = frozenset({Stage.OWES, Stage.LINKED, Stage.STORED, Stage.COUNTED})
HOLDING = frozenset({
    Stage.CLAIMED, Stage.IN_BODY, Stage.ACTED, Stage.UNDONE, Stage.DOUBT, Stage.GIVING_BACK, Stage.UNWRITTEN,
    Stage.RETRYING, Stage.RETRY_SENT, Stage.RETRY_STORED, Stage.FAILING,
})  # fmt: skip


def faults(game: Game, world: World) -> Iterator[Move]:
    """All that may go wrong now."""
    for at, hand in enumerate(world.hands):
        if hand.stage is Stage.IDLE:
            continue
        if world.budget.kills:
            yield from killed(game, spent(world, "kills"), at)
        if world.budget.limits:
            yield from _limited(game, world, at)
        if world.budget.outages:
            yield from outages(game, world, at)
    yield from _early(game, world)
    yield from _overslept(world)
    if world.budget.reopens and _is_overslept(world):
        yield NOBODY, "an old backup is restored", spent(world, "reopens")._replace(record=None)


def killed(game: Game, world: World, at: int) -> Iterator[Move]:
    """Kill a worker here, or only the child that runs the body."""
    hand = world.hands[at]
    if game.vanishes and hand.stage in IN_TRANSACTION and game.transactional:
        world = world._replace(orphan=Orphan(commits=False, record=None))
    gone = with_hand(world, at, IDLE)
    if game.vanishes:
        yield at, "vanishes", gone if game.broker.restores_late else game.broker.requeued(gone, hand.token)
        return
    if game.broker.restores_late:
        yield at, "is killed", gone
    yield from _child_killed(game, world, at)


def _child_killed(game: Game, world: World, at: int) -> Iterator[Move]:
    hand = world.hands[at]
    gone = with_hand(world, at, IDLE)
    if hand.stage in {Stage.STORED, Stage.COUNTED} and not game.keeps(Rule.SUCCESS_COMES_BACK):
        yield at, "loses its child after SUCCESS, and acknowledges", game.broker.acked(gone, hand)
        return
    yield at, "loses its child, and gives the message back", game.broker.requeued(gone, hand.token)
    if game.lost_retry:
        old = hand.message
        retry = Message(who=old.who, nesting=old.nesting, retries=old.retries + 1, reenter=old.reenter)
        sent = game.broker.acked(game.broker.published(gone, retry), hand)
        yield at, "loses its child, sends a retry for it and acknowledges", sent


def _limited(game: Game, world: World, at: int) -> Iterator[Move]:
    """A hard time limit: the child is killed, the main process stores FAILURE and acknowledges (hole H9)."""
    hand = world.hands[at]
    late = hand.stage in OWING or (hand.committed and not holds(game, world.record, hand))
    if hand.stage not in ACTING and not (late and game.late_limits):
        return
    gone = with_hand(spent(world, "limits"), at, IDLE)
    if late and game.keeps(Rule.LIMIT_COMES_BACK):
        yield at, "reaches its hard time limit: given back", game.broker.requeued(gone, hand.token)
        return
    story = world.stories[hand.message.who - 1]._replace(answer=Answer.FAILURE)
    wrong = "NoFalseFailure: FAILURE for work that is done, or that another one has" if late else ""
    failed = with_story(game.broker.acked(gone, hand), hand.message.who, story)._replace(wrong=wrong)
    yield at, "reaches its hard time limit: FAILURE, acknowledged", failed


def _early(game: Game, world: World) -> Iterator[Move]:
    """A message comes back while its holder still works on it."""
    if not world.budget.early:
        return
    for token, message in world.unacked:
        if any(hand.token == token for hand in world.hands):
            yield (
                NOBODY,
                f"the broker gives {named(message)} out again",
                game.broker.requeued(spent(world, "early"), token),
            )


def _overslept(world: World) -> Iterator[Move]:
    """A lease ends while its holder lives: it slept, or its transaction takes longer than the lease."""
    record = world.record
    if not world.budget.sleeps or record is None or record.state is not State.CLAIMED or not record.live:
        return
    for at, hand in enumerate(world.hands):
        if hand.stage in HOLDING and hand.attempt == record.attempt:
            asleep = with_hand(spent(world, "sleeps"), at, hand._replace(trusted=False))
            yield at, "sleeps past its lease", asleep._replace(record=record._replace(live=False))


def _is_overslept(world: World) -> bool:
    record = world.record
    return record is not None and record.state is State.CLAIMED and not record.live


def time_passes(game: Game, world: World) -> Iterator[Move]:
    """What comes by itself: visibility and leases of the dead end, sessions are cut, the rescuer looks."""
    if game.broker.restores_late:
        for token, message in world.unacked:
            if not any(hand.token == token for hand in world.hands):
                yield NOBODY, f"the visibility of {named(message)} ends", game.broker.requeued(world, token)
    yield from _lease_ends(game, world)
    for label, after in session_ends(game, world):
        yield NOBODY, label, after
    for who, story in enumerate(world.stories, 1):
        if story.replacement is Replacement.SENT:
            ran = story._replace(replacement=Replacement.DONE, answer=Answer.SUCCESS, links=max(story.links, 1))
            yield NOBODY, f"the replacement of m{who} runs, and sends the link", with_story(world, who, ran)


def _lease_ends(game: Game, world: World) -> Iterator[Move]:
    record = world.record
    if record is None or record.state is not State.CLAIMED:
        return
    if record.live:
        held = any(hand.stage in HOLDING and hand.attempt == record.attempt for hand in world.hands)
        if not held:
            yield NOBODY, "the lease ends", world._replace(record=record._replace(live=False))
    elif game.keeps(Rule.RESCUER) and not is_locked(game, world):
        free = released(game, record, reset=False, died=True)
        yield NOBODY, "the rescuer releases the claim", world._replace(record=free)
