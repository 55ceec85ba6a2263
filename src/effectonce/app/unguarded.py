"""The door of a call that its policy only observes, or does not guard at all (``effectonce_mode``).

The body runs once, as it would without us; its retry, failure or result is Celery's. In the mode ``observe`` the ledger
is told of it; in ``off`` nobody is. A call whose key cannot be made runs too: in ``observe`` that is a sighting, and
the effect has a name of its own, made from its message.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from celery.exceptions import Ignore, Reject, Retry

from effectonce.app import unique
from effectonce.app.bypass import bypass_of
from effectonce.app.frames import Frame, current_frame, within
from effectonce.domain.modes import Mode
from effectonce.domain.policies import Transactional
from effectonce.domain.sightings import Would
from effectonce.errors import EffectOnceError, LedgerUnsuitable
from effectonce.ports import LedgerStore, is_transactional
from effectonce.runtime.keeper import Keeper
from effectonce.runtime.observed import ObservedAttempt
from effectonce.runtime.plan import Plan
from effectonce.runtime.transactional import TransactionalAttempt
from effectonce.runtime.unguarded import UnguardedAttempt

if TYPE_CHECKING:
    from effectonce.app.guard import Guard


def open_door(guard: "Guard", mode: Mode, task: Any, plain: Callable[..., Any], call: tuple[Any, Any]) -> Any:
    """Carry out one call that is not guarded: *call* is its arguments, *plain* the class's own ``__call__``."""
    args, kwargs = call
    frame = _frame(guard, mode, task, call)
    if frame is None:
        return plain(task, *args, **kwargs)
    with within(frame):
        try:
            result = _go(frame, frame.attempt, plain, call)
        except Exception as error:
            if mode is Mode.OBSERVE:
                unique.ended(frame, error)
            raise
        finally:
            frame.attempt.close()
    if mode is Mode.OBSERVE:
        unique.ended(frame, None)
    return result


def _go(frame: Frame, attempt: Any, plain: Callable[..., Any], call: tuple[Any, Any]) -> Any:
    args, kwargs = call
    try:
        return plain(frame.task, *args, **kwargs)
    except Retry:
        attempt.retried()
        raise
    except Ignore:
        attempt.ignored()
        raise
    except Reject:
        attempt.abandoned()
        raise
    except Exception as error:
        attempt.raised(error)
        raise
    except BaseException:
        attempt.abandoned()
        raise


def _frame(guard: "Guard", mode: Mode, task: Any, call: tuple[Any, Any]) -> Frame | None:
    """The frame of this call; None where its arguments do not fit, which is for the body to say."""
    outer = current_frame()
    request = guard.request_of(task, outer)
    args, kwargs = call
    fault = None
    try:
        key, fingerprint = guard.key_of(task, request, args, kwargs), guard.fingerprint_of(args, kwargs)
    except EffectOnceError as error:
        fault, key, fingerprint = error, guard.key_of_message(request.id or uuid.uuid4().hex), guard.no_fingerprint
    except TypeError:
        return None
    frame = guard.bare_frame(task, request, key, fingerprint, outer)
    frame.attempt = attempt = _attempt(frame, mode)
    if fault is not None and not guard.may_be_nameless:
        attempt.saw(Would.NO_KEY, again=False)
    return frame


def _attempt(frame: Frame, mode: Mode) -> UnguardedAttempt:
    guard, plan = frame.guard, frame.guard.plan(frame)
    opening = _opening(frame, plan)
    if mode is Mode.OBSERVE and not guard.may_run_twice:
        policy = guard.policy
        return ObservedAttempt(
            plan, opening, ledger=lambda: _ledger(frame), on_duplicate=policy.on_duplicate, on_busy=policy.on_busy
        )
    return UnguardedAttempt(plan, opening, at_once=mode is Mode.OFF and _shares_session(frame))


def _ledger(frame: Frame) -> tuple[LedgerStore, Keeper]:
    ledger = frame.ledger
    return ledger, frame.guard.once.keeper_of(ledger)


def _opening(frame: Frame, plan: Plan) -> Callable[[], AbstractContextManager[Any]]:
    """How a body gets a session: the test's, that of the guarded body around it, or a new one of the ledger's."""
    once, outer = frame.guard.once, frame.outer
    bypass = bypass_of(once)
    if bypass is not None:
        return bypass.opening

    def opening() -> AbstractContextManager[Any]:
        around = outer.attempt if outer is not None and outer.entered else None
        if isinstance(around, TransactionalAttempt) and around.work is not None:
            return _savepoint(around.work.session)
        ledger = once.ledger_of(frame.key)
        if not is_transactional(ledger):
            facts = {"ledger": ledger.name, "policy": "once.session", "task": plan.delivery.task}
            raise LedgerUnsuitable(**facts, reason="it is not a SQL database")
        return ledger.unguarded()

    return opening


@contextmanager
def _savepoint(session: Any) -> Iterator[Any]:
    """The session of the body around this one; what is raised here undoes no more than was done here."""
    with session.begin_nested():
        yield session


def _shares_session(frame: Frame) -> bool:
    """Whether the body's work waits for a commit of ours: it writes through a registry's session of its user's."""
    once = frame.guard.once
    if not isinstance(frame.guard.policy, Transactional) or bypass_of(once) is not None:
        return False
    ledger = once.ledger_of(frame.key)
    return is_transactional(ledger) and ledger.shares_session
