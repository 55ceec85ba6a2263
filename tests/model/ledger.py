"""The ledger of the model: its records in, the product's decisions out.

Whether a claim is granted is asked of `domain.claims.admit`, and what a refused delivery does of `judge`; here are
only the records that they read and write. `test_likeness` holds the writes to those of the memory store.
"""

from functools import cache
from uuid import UUID

from effectonce.domain.claims import (
    Claim,
    Entry,
    Granted,
    Outcome,
    Refused,
    Replay,
    State,
    Verdict,
    admit,
    is_open,
    judge,
)
from effectonce.domain.deliveries import Delivery
from effectonce.domain.keys import Key
from tests.model.games import Game, Rule
from tests.model.worlds import Hand, Message, Record, Stage, World, numbers

KEY = Key(digest=b"the key of a run", namespace="", scope="shop.pay", text="order-1", generation=None, tick=None)
TASK, REPLACEMENT = "shop.pay", "shop.pay_slowly"
MANY = 1_000_000
LEASE = 60.0
OPEN = frozenset({State.CLAIMED, State.RELEASED})
DONE = frozenset({State.COMPLETED, State.FAILED})
"""The states of an effect that has taken place, or has failed for good."""
IN_TRANSACTION = frozenset({Stage.IN_BODY, Stage.ACTED})


@cache
def delivery(message: Message, *, flags: bool) -> Delivery:
    """The product's view of one arrival; *flags*: its broker says what it repeats."""
    return Delivery(
        task=REPLACEMENT if message.nesting else TASK,
        task_id=f"id-{message.who}",
        nesting=message.nesting,
        retries=message.retries,
        flagged=message.flagged,
        counts=flags,
        deferrals=message.deferrals,
        reenter=message.reenter or None,
        deferrable=True,
    )


@cache
def claim_of(message: Message, *, attempt: int, most: int) -> Claim:
    """The product's claim for this message."""
    return Claim(
        digest=KEY.digest,
        key=str(KEY),
        attempt=attempt.to_bytes(8, "big"),
        identity=delivery(message, flags=True).identity,
        task_id=f"id-{message.who}",
        fingerprint=b"the arguments",
        lease=LEASE,
        max_takeovers=most or MANY,
        retries=message.retries,
        reenter=message.reenter or None,
    )


@cache
def entry_of(record: Record) -> Entry:
    """The product's view of a record."""
    return Entry(
        digest=KEY.digest,
        key=str(KEY),
        state=record.state,
        fence=record.fence,
        attempt=record.attempt.to_bytes(8, "big"),
        identity=delivery(Message(who=record.who, nesting=record.nesting), flags=True).identity,
        task_id=f"id-{record.who}",
        fingerprint=b"the arguments",
        lease_left=LEASE / 2 if record.live else -1.0,
        deaths=record.deaths,
        attempts=1,
        retries=record.retries,
        continued=record.continued,
        handed_over=record.handed_over,
        result=None,
        result_kept=record.kept,
        since=0.0,
    )


def next_attempt(world: World) -> int:
    """A number that nothing refers to; it is also the reading of the store's clock."""
    return max(numbers(world)) + 1


@cache
def _admitted(record: Record | None, claim: Claim, micros: int) -> Granted | Refused:
    return admit(entry_of(record) if record else None, claim, micros)


@cache
def _judged(record: Record | None, claim: Claim) -> Verdict:
    return judge(Refused(entry=entry_of(record) if record else None), claim)


def ask(game: Game, world: World, message: Message) -> Granted | Refused:
    """Ask for a claim, without waiting for anybody who has the key's lock."""
    attempt = next_attempt(world)
    claim = claim_of(message, attempt=attempt, most=game.most)
    record = world.record
    if is_locked(game, world):
        return Refused(entry=entry_of(record) if record else None)
    if not game.keeps(Rule.REENTRY_BY_FENCE) and record and message.retries and _is_own(record, message):
        claim = claim_of(message._replace(reenter=record.fence), attempt=attempt, most=game.most)
    return _admitted(record, claim, attempt if game.keeps(Rule.FENCES_GROW) else 0)


def verdict_on(game: Game, record: Record | None, message: Message) -> Verdict:
    """What a delivery does whose claim was refused because of *record*, or of a lock without one."""
    found = _judged(record, claim_of(message, attempt=0, most=game.most))
    own = record is not None and _is_own(record, message)
    if own and isinstance(found, Replay) and not game.keeps(Rule.UNFINISHED_GOES_ON):
        return _judged(record and record._replace(continued=True), claim_of(message, attempt=0, most=game.most))
    return found


def can_be_claimed(game: Game, record: Record | None, message: Message) -> bool:
    """Tell whether an entry stands that a claim would be granted on."""
    return record is not None and is_open(entry_of(record), claim_of(message, attempt=0, most=game.most))


def claimed(game: Game, record: Record | None, granted: Granted, message: Message) -> Record:
    """What a granted claim leaves."""
    return Record(
        state=State.CLAIMED,
        fence=granted.fence,
        attempt=int.from_bytes(granted.attempt, "big"),
        who=message.who,
        nesting=message.nesting,
        live=True,
        deaths=granted.deaths if game.most else 0,
        retries=record.retries if record else 0,
    )


def holds(game: Game, record: Record | None, hand: Hand) -> bool:
    """Tell whether a conditional statement of this holder would find its row."""
    if record is None:
        return False
    if not game.keeps(Rule.FENCE):
        return True
    return record.fence == hand.fence and (record.attempt == hand.attempt or not game.keeps(Rule.ATTEMPT))


def ended(record: Record, outcome: Outcome) -> Record:
    """What completing a claim leaves."""
    return record._replace(
        state=outcome.state,
        live=False,
        continued=outcome.continued,
        handed_over=outcome.handed_over,
        kept=outcome.kept,
    )


def released(game: Game, record: Record, *, reset: bool, died: bool = False) -> Record:
    """What letting a claim go leaves: a tombstone with fence and attempt."""
    deaths = 0 if reset else record.deaths + died
    return record._replace(state=State.RELEASED, live=False, deaths=deaths if game.most else 0)


def is_locked(game: Game, world: World) -> bool:
    """Tell whether an open transaction of the database holds the key's try-lock."""
    if not game.transactional:
        return False
    return world.orphan is not None or any(hand.stage in IN_TRANSACTION for hand in world.hands)


def idempotency_key(game: Game, hand: Hand) -> UUID:
    """What this attempt shows to the outside."""
    return KEY.idempotency_key("pay" if game.keeps(Rule.ONE_IDEMPOTENCY_KEY) else f"pay {hand.attempt}")


def _is_own(record: Record, message: Message) -> bool:
    return (record.who, record.nesting) == (message.who, message.nesting)
