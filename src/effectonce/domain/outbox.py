"""Messages that wait for a transaction: what one is, when it is due, and what a failed try means.

A message is stored in the transaction of the work that sends it, serialized as Celery would have published it. After
the commit the process that wrote it sends it at once. Until then, and for `GRACE` seconds after, it belongs to that
process: whoever takes a message holds it for a time, and if it is still there afterwards, it is anybody's. So a
message is sent at least once, and the one that was sent and not yet struck off when its sender died is sent again,
with the same id.

Two failures are not the same. A broker that cannot be reached is no fault of the message, and costs it nothing. A
message that the broker refuses is tried ever more slowly and then set aside as stuck, for a person.
"""

import json
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

GRACE: Final = 5.0
"""Seconds after the commit in which the process that wrote a message has it to itself."""

HOLD: Final = 30.0
"""Seconds for which a relay holds what it took; longer than it may try to send."""

LIMIT: Final = 10
"""Tries after which a message that the broker refuses is stuck."""

RELAYED: Final = "effectonce_relayed"
"""The header of a message that may have gone out before, as the relay that sends it knows."""

_FIRST: Final = 1.0
_SLOWEST: Final = 300.0


class Stage(IntEnum):
    """Where a stored message stands."""

    READY = 0
    """It is sent when it is due."""

    PARKED = 1
    """The same, but due at an instant that its sender asked for."""

    STUCK = 2
    """It waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message, ready for the broker: nothing is serialized, routed or compressed after this.

    *headers*, *properties* and *declares* are JSON texts: what the message says of itself, what it tells the broker
    (priority, delivery mode, expiration and the like), and the queues and exchanges that must exist. *due*: an
    instant of the wall clock, in seconds since the epoch, before which it is not sent. *order*: messages that share
    one are sent in the order in which they were stored, by one sender at a time.
    """

    task: str
    task_id: str
    exchange: str
    routing_key: str
    content_type: str
    content_encoding: str
    body: bytes
    headers: str
    properties: str
    declares: str
    due: float | None = None
    order: str | None = None

    @property
    def stage(self) -> Stage:
        """The stage in which it is stored."""
        return Stage.READY if self.due is None else Stage.PARKED

    @property
    def is_for_relay(self) -> bool:
        """Whether its writer leaves it to a relay: it is not due, or its order is kept by one sender at a time."""
        return self.due is not None or self.order is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message in the outbox. *tries*: how often somebody took it, this time included."""

    id: int
    message: Message
    tries: int
    stage: Stage = Stage.READY
    error: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much waits: *oldest* is the age in seconds of the oldest message that is due."""

    ready: int
    parked: int
    stuck: int
    oldest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Later:
    """Try again in *pause* seconds."""

    pause: float


@dataclass(frozen=True, slots=True)
class Stuck:
    """Set it aside."""


def may_have_gone_out(stored: Stored) -> bool:
    """Tell whether an earlier taker, or the writer itself, may have sent a message that a relay has taken."""
    return stored.tries > 1 or not stored.message.is_for_relay


def marked_as_relayed(stored: Stored) -> Stored:
    """The same message, saying of itself that it may be a repeat. What is not JSON stays as it is."""
    try:
        headers = json.loads(stored.message.headers)
    except ValueError:
        return stored
    return replace(stored, message=replace(stored.message, headers=json.dumps({**headers, RELAYED: 1})))


def after_refusal(*, tries: int, limit: int = LIMIT) -> Later | Stuck:
    """What becomes of a message that the broker refused for the *tries*-th time."""
    if tries >= limit:
        return Stuck()
    return Later(pause=min(_FIRST * 2 ** (tries - 1), _SLOWEST))
