"""What a body sees of its own attempt: `effect`, `session`, `connection`.

They are proxies, so a reusable package can import them without knowing the app that will run it. Outside a guarded
body, using one raises `OutsideEffect`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from uuid import UUID

from celery import current_app
from celery.local import Proxy

from effectonce.app.frames import Frame, current_frame
from effectonce.app.steps import StepOptions, checked_options
from effectonce.domain.policies import Transactional
from effectonce.domain.steps import OnUnknown
from effectonce.errors import NotInstalled, OutsideEffect
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.transactional import TransactionalAttempt
from effectonce.runtime.unguarded import UnguardedAttempt

if TYPE_CHECKING:
    from sqlalchemy import Connection
    from sqlalchemy.orm import Session

    from effectonce.app.sending import Outbox
    from effectonce.ports import Work

P = ParamSpec("P")
R = TypeVar("R")


class Effect:
    """The effect that the current body carries out, and this attempt's right to it."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    @property
    def key(self) -> str:
        """The key in readable form."""
        return self._frame.claim.key

    @property
    def fence(self) -> int:
        """Grows with each holder; send it with each write outside, and let the other side refuse a smaller one."""
        return self._frame.attempt.fence

    @property
    def attempt(self) -> int:
        """Which attempt at this effect this is, counted from 1 over those that are known to the ledger."""
        granted = self._frame.attempt.granted
        return granted.attempts if granted else 1

    @property
    def is_takeover(self) -> bool:
        """Whether an earlier holder died: parts of its outside work may have happened."""
        granted = self._frame.attempt.granted
        return bool(granted and granted.takeover)

    @property
    def tick(self) -> str | None:
        """The instant of the schedule that sent this task; None for a task that no schedule sent."""
        return self._frame.key.tick

    def idempotency_key(self, step: str) -> UUID:
        """A UUID for *step* that is the same in every attempt at this effect; show it to the outside."""
        return self._frame.key.idempotency_key(step)

    def ensure_current(self) -> None:
        """Raise FenceRefused when another attempt may hold the effect by now; asks the ledger, one round trip."""
        self._frame.attempt.ensure_current()

    def step(self, name: str, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out ``call(*args, **kwargs)`` as the step *name*, unless it has been; see `StepOptions.step`."""
        return StepOptions(self._frame).step(name, call, *args, **kwargs)

    def options(
        self, *, on_unknown: OnUnknown | None = None, not_done: tuple[type[Exception], ...] = ()
    ) -> StepOptions:
        """Options for single steps: ``effect.options(on_unknown="hold").step(...)``.

        *on_unknown* instead of the policy's. *not_done*: exceptions of the call that say it did nothing.
        """
        return checked_options(self._frame, on_unknown, not_done)

    def transaction(self) -> AbstractContextManager["Session"]:
        """A transaction of the ledger's SQL database, as a session, that commits only while the claim is not lost.

        Under `Leased` on a SQL ledger; LedgerUnsuitable elsewhere. Leaving the context commits, on condition of the
        fence in the same transaction; raises FenceRefused, with nothing committed, when another attempt has the effect.
        """
        attempt = self._frame.attempt
        if not isinstance(attempt, (LeasedAttempt, UnguardedAttempt)):
            raise OutsideEffect(face="effect.transaction()")
        return attempt.transaction()

    def __repr__(self) -> str:
        """Show key, fence and attempt."""
        return f"<effect {self.key} fence={self.fence} attempt={self.attempt}>"


def _entered(face: str) -> Frame:
    frame = current_frame()
    if frame is None or not frame.entered:
        raise OutsideEffect(face=face)
    return frame


def current_effect() -> Effect:
    """The effect of the body that this thread is in."""
    return Effect(_entered("effect"))


def current_work(face: str) -> "Work | UnguardedAttempt":
    """The transaction of the body that this thread is in."""
    frame = _entered(face)
    attempt = frame.attempt
    if isinstance(attempt, UnguardedAttempt) and isinstance(frame.guard.policy, Transactional):
        return attempt
    if isinstance(attempt, TransactionalAttempt) and attempt.work is not None:
        return attempt.work
    raise OutsideEffect(face=face)


def current_session() -> Any:
    """The SQLAlchemy session of the transaction that this thread's body is in."""
    return current_work("session").session


def current_connection() -> Any:
    """The SQLAlchemy connection of the transaction that this thread's body is in."""
    return current_work("connection").connection


def outbox(session: Any = None, *, in_order: str | None = None) -> "Outbox":
    """`EffectOnce.outbox` of the app whose body this thread is in, or else of the current app.

    Raises NotInstalled when that app has no EffectOnce.
    """
    frame = current_frame()
    once = getattr(current_app, "effectonce", None) if frame is None else frame.guard.once
    if once is None:
        raise NotInstalled(task="outbox", app=current_app.main)
    opened: Outbox = once.outbox(session, in_order=in_order)
    return opened


effect: Final["Effect"] = Proxy(current_effect)
session: Final["Session"] = Proxy(current_session)
connection: Final["Connection"] = Proxy(current_connection)
