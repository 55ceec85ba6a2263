"""The two doors of a guarded task, and what Celery sees of each ending.

======================  ==============================================================================
ending                  what a message's delivery does
======================  ==============================================================================
body returned           its result goes on to links, chain, chord and backend
done before             the stored result does (`Replay`), or nothing when it has gone out (`Ignore`)
busy                    a copy is published and confirmed, then this one is acknowledged (`Ignore`)
ledger away, fenced     the same
retry                   rolled back, the retry published and confirmed, then the key is released
failed                  released; FAILURE as ever
held                    kept for a person, state HELD
======================  ==============================================================================

A direct or eager call has no message: it waits, and then raises.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded
from kombu.exceptions import EncodeError

from effectonce.app import endings, unique
from effectonce.app.frames import Frame, current_frame, within
from effectonce.app.guard import Guard
from effectonce.app.requests import read_delivery
from effectonce.app.too_late import hold_if_forgotten
from effectonce.app.unguarded import open_door
from effectonce.domain.modes import Mode
from effectonce.errors import CommitUncertain, EffectBusy, KeyMissing, LedgerUnavailable
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.signals import Away, Fenced, Raised, Refusal, Remembered, Signal, Undecided


def outer_door(guard: Guard, task: Any, plain: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Carry out one guarded call: *plain* is the class's own ``__call__``."""
    mode = guard.mode
    if mode is not Mode.ENFORCE:
        return open_door(guard, mode, task, plain, (args, kwargs))
    outer = current_frame()
    request = guard.request_of(task, outer)
    try:
        frame = guard.frame(task, request, args, kwargs, outer)
    except KeyMissing:
        if not guard.may_be_nameless:
            raise
        return plain(task, *args, **kwargs)
    except LedgerUnavailable as error:
        endings.away_before_start(guard.once, task, request, read_delivery(task, request), error)
    _refuse_own_key(frame)
    with within(frame), guard.span_of(frame):
        try:
            if frame.late:
                hold_if_forgotten(frame)
            result = _go(frame, plain, args, kwargs)
        except Exception as error:
            unique.ended(frame, error)
            raise
        finally:
            frame.attempt.close()
    unique.ended(frame, None)
    return result


def _refuse_own_key(frame: Frame) -> None:
    """An effect cannot be part of itself: a body that calls for its own key would wait for its own end."""
    outer = frame.outer
    while outer is not None:
        if outer.entered and outer.claim.digest == frame.claim.digest and not frame.guard.may_run_twice:
            raise EffectBusy(task=frame.delivery.task, key=frame.claim.key, wait=frame.claim.lease)
        outer = outer.outer


def inner_door(frame: Frame, body: Callable[[], Any]) -> Any:
    """Run the body as this frame's attempt; called inside ``autoretry_for`` and the user's own ``__call__``."""

    def run() -> Any:
        frame.begin_body()
        unique.started(frame)
        try:
            result = body()
        finally:
            frame.entered = False
        if frame.retry is not None:
            message = "retry(throw=False) was asked for: the body does not count as done"
            raise Retry(message)
        return result

    return frame.attempt.run(run)


def _go(frame: Frame, plain: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    try:
        result = plain(frame.task, *args, **kwargs)
    except Signal as signal:
        return _signalled(frame, signal)
    except Retry:
        _retry(frame)
        raise
    except Ignore:
        _settle_or_put_off(frame, frame.attempt.ignored)
        raise
    except Reject as reject:
        (_settle if reject.requeue else partial(_settle_or_put_off, frame))(frame.attempt.abandoned)
        raise
    except SoftTimeLimitExceeded:
        if not frame.attempt.is_done:
            _failed(frame)
            raise
        result = frame.attempt.result
    except Exception:
        _failed(frame)
        raise
    except BaseException:
        _settle(frame.attempt.abandoned)
        raise
    if frame.attempt.granted is not None:
        _owe(frame, continues=frame.delivery.continues, succeeded=True)
    return result


def _failed(frame: Frame) -> None:
    """Let the key go; to the retry, if the body asked for one before it failed (``retry(throw=False)``)."""
    if frame.retry is not None:
        _retry(frame)
    else:
        _settle_or_put_off(frame, frame.attempt.failed)


def _settle_or_put_off(frame: Frame, ending: Callable[[], None]) -> None:
    """Write an ending after which Celery acknowledges; a fenced holder puts its delivery off instead (rule 11).

    On Redis its acknowledgement would remove the new holder's message. A failure that cannot be written for want of
    the ledger is a failure all the same, and its lease ends; an ending by `Ignore` is not done until it is written.
    """
    try:
        ending()
    except Fenced as signal:
        if frame.delivery.deferrable:
            endings.fenced(frame, signal)
    except Away as signal:
        if frame.delivery.deferrable and ending == frame.attempt.ignored:
            endings.away(frame, signal.error)


def _signalled(frame: Frame, signal: Signal) -> Any:
    match signal:
        case Refusal():
            return endings.refused(frame, signal.verdict)
        case Remembered():
            _owe(frame, continues=frame.delivery.fails_on, succeeded=False)
            raise signal.error from None
        case Raised():
            _settle_or_put_off(frame, frame.attempt.failed)
            raise signal.error from signal.error.__cause__
        case Away():
            if not isinstance(signal.error, CommitUncertain):  # a release would wait for that very commit
                _settle(frame.attempt.abandoned)
            return endings.away(frame, signal.error)
        case Fenced():
            return endings.fenced(frame, signal)
        case Undecided():
            return _undecided(frame, signal)
        case _:
            raise signal


def _undecided(frame: Frame, signal: Undecided) -> Any:
    """Mark the effect as unknown and keep this message with it; where that cannot be written, it is put off."""
    attempt = frame.attempt
    assert isinstance(attempt, LeasedAttempt)  # noqa: S101 - no other attempt has steps
    try:
        attempt.undecided(signal.step)
    except Fenced as fenced:
        return endings.fenced(frame, fenced)
    except Away as away:
        return endings.away(frame, away.error)
    return endings.unknown(frame, signal)


def _retry(frame: Frame) -> None:
    """Publish the retry now that the body is unwound and rolled back, then let its key go (rule 5).

    A crash before the publish: the delivery comes again. After it, before the release: the retry carries the fence of
    this attempt and goes on from there. When the broker cannot take it, the delivery itself is given back;
    one that cannot be encoded ends as Celery ends it, as a failure.
    """
    publish = frame.retry
    if publish is not None:
        try:
            publish()
        except (EncodeError, TypeError, ValueError) as error:
            _settle_or_put_off(frame, frame.attempt.failed)
            raise Reject(error, requeue=False) from error
        except Exception as error:
            _settle(frame.attempt.abandoned)
            raise Reject(error, requeue=True) from error
    _settle(frame.attempt.retried)


def _settle(ending: Callable[[], None]) -> None:
    """Write an ending. One that is fenced or cannot be written leaves the rest to the lease (rules 9 and 11)."""
    with suppress(Fenced, Away):
        ending()


def _owe(frame: Frame, *, continues: bool, succeeded: bool) -> None:
    claim = frame.claim
    endings.owed(frame, digest=claim.digest, attempt=claim.attempt, marked=continues, succeeded=succeeded)
