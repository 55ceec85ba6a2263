"""What a policy would have done with a call that was only observed.

A sighting is one thing that would have happened to calls of one key, however often: it counts, and remembers the first
and the last time. So a key that is called a million times is a few rows.
"""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final, assert_never

from effectonce.domain.claims import Busy, Continued, Held, Poison, Replay, Reused, Verdict

KEPT: Final = 30 * 24 * 3600.0
"""Seconds that a sighting is kept after the last time."""

_PERSON: Final = b"effectonce-seen1"


class Would(StrEnum):
    """What would have happened to the call; the texts are stored and shown."""

    REPLAY = "replayed"
    RAISE = "refused as a duplicate"
    DEFER = "put off"
    SKIP = "skipped"
    BUSY = "refused as busy"
    REUSE = "refused: other arguments"
    HOLD = "held for a person"
    NOT_SEND = "not sent"
    NO_KEY = "refused: no key"


SUPPRESSED: Final = frozenset(Would) - {Would.DEFER}
"""All but a call that would have run a little later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Calls of one key that would not have run there and then.

    *again*: they were deliveries of the very message that holds the effect, so the broker repeated it. *times*: how
    many; *first* and *last*: the store's clock, epoch seconds. *task_id*: of the last one.
    """

    digest: bytes
    key: str
    task: str
    task_id: str
    would: Would
    again: bool
    times: int = 1
    first: float = 0.0
    last: float = 0.0

    @property
    def mark(self) -> bytes:
        """Sixteen bytes that name the effect and what would have happened to it."""
        told = f"{self.would.name}:{self.again:d}".encode()
        return blake2b(self.digest + told, digest_size=16, person=_PERSON).digest()


def would(verdict: Verdict, *, on_duplicate: str, on_busy: str, must_wait: bool) -> Would:
    """Say what the policy would have done; *must_wait*: what goes on from the call keeps it from being skipped."""
    match verdict:
        case Replay():
            return Would.RAISE if on_duplicate == "raise" else Would.REPLAY
        case Continued():
            return Would.REPLAY
        case Reused():
            return Would.REUSE
        case Busy():
            return Would.DEFER if must_wait or verdict.own else _WHEN_BUSY.get(on_busy, Would.DEFER)
        case Poison() | Held():
            return Would.HOLD
    assert_never(verdict)


_WHEN_BUSY: Final = {"skip": Would.SKIP, "raise": Would.BUSY}
