"""Which guarded body this thread is in.

A frame is one guarded call: its task and request, its attempt, and what its body sends. Frames nest: a guarded task
may call another one directly. They live in a context variable, so threads and greenlets do not see each other's.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Optional

from effectonce.domain.claims import Claim
from effectonce.domain.deliveries import Delivery
from effectonce.domain.fingerprints import Fingerprint
from effectonce.domain.keys import Key
from effectonce.ports import LedgerStore

if TYPE_CHECKING:
    from effectonce.app.guard import Guard
    from effectonce.runtime.leased import LeasedAttempt
    from effectonce.runtime.natural import NaturalAttempt
    from effectonce.runtime.transactional import TransactionalAttempt
    from effectonce.runtime.unguarded import UnguardedAttempt


@dataclass(slots=True, kw_only=True, eq=False)
class Frame:
    """One guarded call.

    *begun*: its attempt was started. *entered*: this thread is in its body. *retry*: publishes the retry that the body
    asked for, once the body is unwound. *replaced*: the body sends a replacement; *handed_on*: one with this same key.
    *sends*: how many messages the body has sent. *comes_again*: this message was put off or is held. *late*: it came
    so late that an empty ledger proves nothing.
    """

    task: Any
    request: Any
    guard: "Guard"
    key: Key
    fingerprint: Fingerprint
    claim: Claim
    delivery: Delivery
    outer: Optional["Frame"]
    attempt: "LeasedAttempt | TransactionalAttempt | NaturalAttempt | UnguardedAttempt" = field(init=False)
    begun: bool = False
    entered: bool = False
    retry: Callable[[], None] | None = None
    replaced: bool = False
    handed_on: bool = False
    sends: int = 0
    comes_again: bool = False
    late: bool = False
    _ledger: LedgerStore | None = field(init=False, default=None)

    @property
    def ledger(self) -> LedgerStore:
        """Where the effect is recorded; found once a call."""
        if self._ledger is None:
            self._ledger = self.guard.ledger_of(self.key)
        return self._ledger

    def begin_body(self) -> None:
        """Forget what an earlier turn of the body sent or asked for."""
        self.entered, self.retry, self.replaced, self.handed_on, self.sends = True, None, False, False, 0

    def name_next(self) -> str:
        """The name of what the body sends next: this effect, and its place there."""
        self.sends += 1
        return f"{self.claim.digest.hex()}#{self.sends}"


_frame: ContextVar[Frame | None] = ContextVar("effectonce_frame", default=None)


def current_frame() -> Frame | None:
    """The innermost guarded call of this thread."""
    return _frame.get()


class within:  # noqa: N801 - reads as a word: with within(frame)
    """A context in which *frame* is the innermost one."""

    __slots__ = ("_frame", "_token")

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __enter__(self) -> Frame:
        self._token = _frame.set(self._frame)
        return self._frame

    def __exit__(self, *_: object) -> None:
        _frame.reset(self._token)
