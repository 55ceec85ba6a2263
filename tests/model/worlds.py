"""The state of a model run: small, hashable, and without anything that no decision depends on.

Fences and attempts are numbers drawn from one growing row; `symmetry` keeps them small.
"""

from enum import IntEnum
from typing import NamedTuple
from uuid import UUID

from effectonce.domain.claims import State


class Stage(IntEnum):
    """Where a worker stands with its delivery; each is a place at which it may be killed."""

    IDLE = 0
    RECEIVED = 1
    CLAIMED = 2
    IN_BODY = 3
    ACTED = 4
    DOUBT = 5
    GIVING_BACK = 6
    DEFERRING = 7
    ACKED_FIRST = 8
    RETRYING = 9
    RETRY_SENT = 10
    RETRY_STORED = 11
    FAILING = 12
    FAILED = 13
    OWES = 14
    LINKED = 15
    STORED = 16
    COUNTED = 17
    POISONING = 18
    ENDING = 19
    GIVING_UP = 20
    STANDING = 21
    UNWRITTEN = 22
    UNDONE = 23


class Answer(IntEnum):
    """What a message's result shows."""

    PENDING = 0
    SUCCESS = 1
    FAILURE = 2
    HELD = 3
    REVOKED = 4


class Replacement(IntEnum):
    """What became of the message that a body sent in its own place."""

    NONE = 0
    SENT = 1
    DONE = 2


class Message(NamedTuple):
    """One message; *who* is its id, *tag* its delivery tag where the broker keeps one for life.

    *deferrals* is 0 or 1, since only that decides. *reenter* is the fence of a retry, 0 without one. *drops* counts
    how often a broker with a delivery limit gave it out again.
    """

    who: int = 0
    tag: int = 0
    flagged: bool = False
    deferrals: int = 0
    retries: int = 0
    reenter: int = 0
    nesting: int = 0
    expires: bool = False
    drops: int = 0


class Record(NamedTuple):
    """The committed entry. *live*: its lease has not ended. *retries* is stored only where a mutant reads it."""

    state: State
    fence: int
    attempt: int
    who: int
    nesting: int = 0
    live: bool = False
    deaths: int = 0
    continued: bool = False
    handed_over: bool = False
    kept: bool = False
    retries: int = 0


class Hand(NamedTuple):
    """One worker. *committed*: its claim is. *trusted*: it has no reason to doubt its lease.

    *attempt* names, once the effect is settled, whose outcome is continued; *marks*: that is worth a mark.
    """

    stage: Stage = Stage.IDLE
    message: Message = Message()
    token: int = 0
    fence: int = 0
    attempt: int = 0
    committed: bool = False
    trusted: bool = False
    marks: bool = False


class Orphan(NamedTuple):
    """A session of the database without its client; it keeps the key's lock. *commits*: COMMIT has reached it."""

    commits: bool
    record: Record | None


class Story(NamedTuple):
    """What became of one message id. *links*: ids under which its continuation went out."""

    answer: Answer = Answer.PENDING
    links: int = 0
    counted: bool = False
    replacement: Replacement = Replacement.NONE


class Budget(NamedTuple):
    """How many of each fault may still come.

    *early*: redeliveries while the holder still runs. *sleeps*: leases that end while the holder lives. *outages*
    of the ledger, *failures* of a body, *refusals* by the broker, *unstored* results, hard time *limits*.
    """

    kills: int = 0
    early: int = 0
    sleeps: int = 0
    retries: int = 0
    failures: int = 0
    outages: int = 0
    refusals: int = 0
    unstored: int = 0
    limits: int = 0
    reopens: int = 0


class World(NamedTuple):
    """All of it. *effects*: how often the key's effect was recorded. *shown*: keys that the outside was shown.

    *wrong*: what the last step did that no step may do.
    """

    queue: tuple[Message, ...]
    unacked: tuple[tuple[int, Message], ...]
    record: Record | None
    hands: tuple[Hand, ...]
    orphan: Orphan | None
    effects: int
    shown: tuple[UUID, ...]
    stories: tuple[Story, ...]
    budget: Budget
    wrong: str = ""


IDLE = Hand()

Move = tuple[int, str, World]
"""Whose step it is (`NOBODY` for the world's own), what it does, and the world after it."""
NOBODY = -1


def numbers(world: World) -> set[int]:
    """All fences and attempts that anything still refers to."""
    found = {0}
    for message in world.queue:
        found.add(message.reenter)
    for _, message in world.unacked:
        found.add(message.reenter)
    for hand in world.hands:
        found.update((hand.fence, hand.attempt, hand.message.reenter))
    for record in (world.record, world.orphan.record if world.orphan else None):
        if record is not None:
            found.update((record.fence, record.attempt))
    return found


def with_hand(world: World, at: int, hand: Hand) -> World:
    """The world with another hand at this place."""
    return world._replace(hands=(*world.hands[:at], hand, *world.hands[at + 1 :]))


def with_story(world: World, who: int, story: Story) -> World:
    """The world with another story of message *who*, counted from 1."""
    return world._replace(stories=(*world.stories[: who - 1], story, *world.stories[who:]))


def spent(world: World, fault: str) -> World:
    """The world with one fault of this kind less to come."""
    return world._replace(budget=world.budget._replace(**{fault: getattr(world.budget, fault) - 1}))


def named(message: Message) -> str:
    """A message, for people."""
    words = [f"m{message.who}" + "'" * message.nesting]
    words += [f"retry {message.retries}"] * bool(message.retries)
    words += [f"with fence {message.reenter}"] * bool(message.reenter)
    words += ["deferred"] * bool(message.deferrals) + ["redelivered"] * message.flagged
    return " ".join(words)
