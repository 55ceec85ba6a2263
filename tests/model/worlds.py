"""The state of a model run: small, hashable, and without anything that no decision depends on.

Fences and attempts are numbers drawn from one growing row. They are renumbered from 1 after each step, in their
order: nothing depends on more than which is larger. Workers are alike, so they are sorted.
"""

from enum import IntEnum
from typing import NamedTuple

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


class Answer(IntEnum):
    """What a message's result shows."""

    PENDING = 0
    SUCCESS = 1
    FAILURE = 2
    HELD = 3
    REVOKED = 4


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


class Budget(NamedTuple):
    """How many of each fault may still come.

    *early*: redeliveries while the holder still runs. *sleeps*: leases that end while the holder lives. *outages*
    of the ledger, *failures* of a body, *refusals* by the broker or the result backend, hard time *limits*.
    """

    kills: int = 0
    early: int = 0
    sleeps: int = 0
    retries: int = 0
    failures: int = 0
    outages: int = 0
    refusals: int = 0
    limits: int = 0
    reopens: int = 0


class World(NamedTuple):
    """All of it. *effects*: how often the key's effect was recorded. *shown*: keys that the outside was shown.

    *replacement*: 0 none, 1 on its way, 2 done. *wrong*: what the last step did that no step may do.
    """

    queue: tuple[Message, ...]
    unacked: tuple[tuple[int, Message], ...]
    record: Record | None
    hands: tuple[Hand, ...]
    orphan: Orphan | None
    effects: int
    shown: int
    stories: tuple[Story, ...]
    replacement: int
    budget: Budget
    wrong: str = ""


IDLE = Hand()


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


def canonical(world: World, *, renumber: bool) -> World:
    """The representative of all worlds that differ in names only."""
    found = numbers(world) if renumber else {0}
    if max(found) != len(found) - 1:
        world = _renumbered(world, {old: new for new, old in enumerate(sorted(found))})
    return world._replace(
        hands=tuple(sorted(world.hands)), queue=tuple(sorted(world.queue)), unacked=tuple(sorted(world.unacked))
    )


def _renumbered(world: World, to: dict[int, int]) -> World:
    def message(old: Message) -> Message:
        return old._replace(reenter=to[old.reenter]) if old.reenter else old

    def record(old: Record | None) -> Record | None:
        return old and old._replace(fence=to[old.fence], attempt=to[old.attempt])

    return world._replace(
        queue=tuple(message(each) for each in world.queue),
        unacked=tuple((token, message(each)) for token, each in world.unacked),
        record=record(world.record),
        hands=tuple(
            hand._replace(fence=to[hand.fence], attempt=to[hand.attempt], message=message(hand.message))
            for hand in world.hands
        ),
        orphan=world.orphan and world.orphan._replace(record=record(world.orphan.record)),
    )


def with_hand(world: World, at: int, hand: Hand) -> World:
    """The world with another hand at this place."""
    return world._replace(hands=(*world.hands[:at], hand, *world.hands[at + 1 :]))


def with_story(world: World, who: int, story: Story) -> World:
    """The world with another story of message *who*, counted from 1."""
    return world._replace(stories=(*world.stories[: who - 1], story, *world.stories[who:]))
