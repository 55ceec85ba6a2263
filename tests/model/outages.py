"""A ledger that cannot be asked, or whose answer is lost: at a claim, a settlement, a COMMIT (rules 9, 10)."""

from collections.abc import Iterator

from effectonce.domain.claims import Granted, State
from tests.model import endings
from tests.model.attempts import claims_committed, is_ignored, outcome_of, uncommitted
from tests.model.games import Game, Rule
from tests.model.ledger import DONE, ask, claimed, ended, holds
from tests.model.unwinding import let_go
from tests.model.worlds import Hand, Move, Orphan, Record, Stage, World, spent, with_hand


def outages(game: Game, world: World, at: int) -> Iterator[Move]:
    """The ledger is away for one step that asks it."""
    hand = world.hands[at]
    away = spent(world, "outages")
    match hand.stage:
        case Stage.RECEIVED | Stage.STANDING:
            yield at, "cannot ask the ledger", _away(game, away, at)
            yield from _claimed_untold(game, away, at)
        case Stage.CLAIMED:
            yield at, "cannot begin its transaction", _giving_back(game, away, at)
        case Stage.GIVING_BACK | Stage.UNWRITTEN | Stage.POISONING:
            yield at, "cannot write to the ledger", endings.deferring(away, at)
        case Stage.ACTED if not game.transactional:
            yield from _uncompleted(game, away, at)
        case Stage.IN_BODY | Stage.ACTED if game.transactional and not game.deadly:
            yield at, "loses its connection at COMMIT", _commit_lost(game, away, at)
        case Stage.RETRY_SENT | Stage.COUNTED:
            yield at, "cannot write to the ledger", endings.acknowledging(away, at)
        case Stage.FAILING:
            yield at, "cannot release the key", with_hand(away, at, hand._replace(stage=Stage.FAILED))
        case _:
            return


def _away(game: Game, world: World, at: int) -> World:
    return endings.deferring(world, at) if game.keeps(Rule.AWAY_DEFERS) else endings.rejected(game, world, at)


def _giving_back(game: Game, world: World, at: int) -> World:
    if not game.keeps(Rule.AWAY_DEFERS):
        return endings.rejected(game, world, at)
    return with_hand(world, at, world.hands[at]._replace(stage=Stage.GIVING_BACK))


def _claimed_untold(game: Game, world: World, at: int) -> Iterator[Move]:
    """The claim is committed and nobody knows: it stands until its lease ends."""
    hand = world.hands[at]
    if not claims_committed(game, hand):
        return
    answer = ask(game, world, hand.message)
    if isinstance(answer, Granted):
        record = claimed(game, world.record, answer, hand.message)
        yield at, "claims, and is not told", _away(game, world._replace(record=record), at)


def _uncompleted(game: Game, world: World, at: int) -> Iterator[Move]:
    """The effect has taken place outside; the ledger did not take that, or did not say so."""
    hand, record = world.hands[at], world.record
    if is_ignored(game, hand):
        bare = not game.keeps(Rule.FENCED_IGNORE_DEFERS)
        yield at, "cannot complete", endings.acknowledging(world, at) if bare else endings.deferring(world, at)
        return
    unwritten = with_hand(world, at, hand._replace(stage=Stage.UNWRITTEN))
    yield at, "cannot complete", unwritten
    if record is not None and record.state is State.CLAIMED and holds(game, record, hand):
        yield at, "completes, and is not told", _completed(game, unwritten, record, hand)


def unwritten(game: Game, world: World, at: int) -> Iterator[Move]:
    """Try once more to complete, and put the delivery off: its copy goes on from what stands then."""
    hand, record = world.hands[at], world.record
    if record is not None and record.state is State.CLAIMED and holds(game, record, hand):
        world = _completed(game, world, record, hand)
    yield at, "tries once more to complete", endings.deferring(world, at)


def _completed(game: Game, world: World, record: Record, hand: Hand) -> World:
    return world._replace(record=ended(record, outcome_of(game, hand)), effects=world.effects + 1)


def _commit_lost(game: Game, world: World, at: int) -> World:
    """The connection breaks at COMMIT, and the server goes on with it, or does not."""
    hand, record = world.hands[at], world.record
    outcome = outcome_of(game, hand)
    after: Record | None = None
    if not hand.committed:
        after = uncommitted(hand, outcome)
    elif record is not None and record.state is State.CLAIMED and holds(game, record, hand):
        after = ended(record, outcome)
    waiting = with_hand(world, at, hand._replace(stage=Stage.DOUBT))
    return waiting._replace(orphan=Orphan(commits=True, record=after))


def in_doubt(game: Game, world: World, at: int) -> Iterator[Move]:
    """Ask a new connection whether the lost COMMIT took place: under the lock, so after the server has decided."""
    hand, record = world.hands[at], world.record
    if world.orphan is not None:
        yield at, "cannot learn in time whether it has committed", endings.deferring(world, at)
        if not game.keeps(Rule.COMMIT_IS_ASKED_UNDER_LOCK):
            failed = with_hand(world, at, hand._replace(stage=Stage.GIVING_UP))
            yield at, "sees nothing without the lock, and fails as not done", failed
    elif record is None or record.attempt != hand.attempt or record.state is not outcome_of(game, hand).state:
        yield at, "learns that it has not committed", endings.deferring(let_go(game, world, hand), at)
    elif is_ignored(game, hand):
        yield at, "learns that it has committed", endings.acknowledging(world, at)
    else:
        owing = endings.owing(game, world, at, attempt=hand.attempt, marks=game.continues)
        yield at, "learns that it has committed", owing


def session_ends(game: Game, world: World) -> Iterator[tuple[str, World]]:
    """What the server does with a session whose client is gone."""
    orphan = world.orphan
    if orphan is None:
        return
    if orphan.commits or game.keeps(Rule.SESSIONS_END):
        yield "the server ends the session: rolled back", world._replace(orphan=None)
    if orphan.commits and orphan.record is not None:
        done = world.effects + (orphan.record.state in DONE)
        yield "the server commits", world._replace(orphan=None, record=orphan.record, effects=done)
