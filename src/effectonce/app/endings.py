"""What a delivery does that may not run its body.

Nothing here acknowledges a message as done that is not: a busy one is copied first, and the copy is confirmed. Where
the broker cannot take the copy, the delivery is given back (`Reject`), which leaves the message where it was.
"""

import random
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, NoReturn, assert_never

from celery import states
from celery.backends.base import DisabledBackend
from celery.exceptions import Ignore, Reject
from celery.result import AsyncResult

from effectonce.app.continuation import Duty, note_replay, owe
from effectonce.app.copies import held_message, put_off
from effectonce.app.encoding import decode_failure, decode_result
from effectonce.app.frames import Frame
from effectonce.app.guard import ignores_result, in_chunk
from effectonce.domain.causes import Cause, cause_of
from effectonce.domain.claims import Busy, Continued, Entry, Held, Poison, Replay, Reused, State, Verdict
from effectonce.domain.deferral import busy_delay
from effectonce.domain.deliveries import Delivery
from effectonce.domain.fingerprints import names_that_differ
from effectonce.domain.following import Following
from effectonce.errors import (
    EffectBusy,
    EffectDuplicate,
    EffectHeld,
    EffectKeyReused,
    EffectOnceError,
    LedgerUnavailable,
    ResultNotKept,
)
from effectonce.events import Name
from effectonce.ports import is_transactional
from effectonce.runtime.signals import Fenced, Undecided
from effectonce.runtime.transactional import TransactionalAttempt

HELD: Final = "HELD"
"""The state of a task whose message waits for a person."""

_STANDS_BEHIND: Final = frozenset({"busy", "waited", "follows"})
"""Why a copy is put off that stands behind another message; other reasons are no duplicate's."""

STAYS_BUSY: Final = 3
"""Deferrals after which a delivery asks who holds its key."""


def refused(frame: Frame, verdict: Verdict) -> Any:
    """End a delivery whose claim was refused; answers the result of a replay, else raises."""
    match verdict:
        case Replay(entry=entry):
            _send_rest(frame, entry, at_once=entry.identity == frame.claim.identity)
            return _replay(frame, entry)
        case Continued(entry=entry):
            _send_rest(frame, entry, at_once=True)
            _replayed(frame, entry, how="it had gone on before")
            message = f"effect {frame.claim.key} took place and went on"
            raise Ignore(message)
        case Reused(entry=entry):
            raise _reused(frame, entry)
        case Busy():
            return _busy(frame, verdict)
        case Poison(entry=entry):
            return _poison(frame, entry)
        case Held(entry=entry):
            return _hold(frame, entry)
    assert_never(verdict)


def away(frame: Frame, error: EffectOnceError) -> NoReturn:
    """End a delivery whose ledger could not be asked, or not to the end (rules 9 and 10)."""
    if not frame.delivery.deferrable:
        _put_off_chunk(frame, Busy(wait=None, own=False))
        raise error
    _put_off(frame, frame.guard.once.away_delay(frame.delivery), why=error.code)


def fenced(frame: Frame, signal: Fenced) -> NoReturn:
    """End a delivery that slept past its claim: a copy waits, whoever holds the claim now (rule 11)."""
    if not frame.delivery.deferrable:
        raise signal.__cause__ or _busy_error(frame, Busy(wait=frame.claim.lease, own=False))
    _busy_again(frame, Busy(wait=None, own=True), why="fenced")


def unknown(frame: Frame, signal: Undecided) -> NoReturn:
    """End a delivery whose effect is left to a person; its entry says so already (rule 18)."""
    claim = frame.claim
    if not frame.delivery.deferrable:
        cause = signal.__cause__
        raise EffectHeld(task=frame.delivery.task, key=claim.key, state="unknown", since="now") from cause
    try:
        frame.ledger.hold(claim.digest, held_message(frame.task, frame.request))
    except LedgerUnavailable as error:
        away(frame, error)
    show_held(frame, State.UNKNOWN)


def _send_rest(frame: Frame, entry: Entry, *, at_once: bool) -> None:
    """See to it that what the first one's body sent has gone out (rule 6); what cannot go now is left to the relays.

    *at_once*: this is the same message again, so its first delivery has most likely died before it sent.
    """
    if entry.unsent and isinstance(frame.attempt, TransactionalAttempt):
        with suppress(LedgerUnavailable):
            frame.guard.once.relay(frame.ledger).relay(effect=frame.claim.digest, at_once=at_once)


def _replay(frame: Frame, entry: Entry) -> Any:
    own = entry.identity == frame.claim.identity
    if not own and frame.guard.policy.on_duplicate == "raise":
        raise EffectDuplicate(task=frame.delivery.task, key=entry.key, at=_instant(entry.since), task_id=entry.task_id)
    if entry.state is State.FAILED:
        _owe(frame, entry, marked=own and frame.delivery.fails_on)
        _happened(frame, entry)
        if entry.result is None:
            raise _not_kept(frame, entry, "it was redacted")
        raise decode_failure(frame.task, entry.result)
    result = _result_of(frame, entry)
    _owe(frame, entry, marked=own and frame.delivery.continues)
    _happened(frame, entry)
    return result


def _result_of(frame: Frame, entry: Entry) -> Any:
    """The stored result, the replacement's, or that of the first task's backend; never a silent None (rule 14)."""
    if entry.result_kept:
        return None if entry.result is None else decode_result(frame.task, entry.result)
    if entry.continued and not entry.handed_over:
        message = f"effect {entry.key} ended by Ignore, without a result"
        raise Ignore(message)
    if ignores_result(frame.task, frame.request):
        return None
    first = _first_result(frame, entry)
    state = None if first is None else _state_of(frame, first)
    if first is not None and state == states.SUCCESS:
        return first.result
    if entry.handed_over and first is not None and state == states.FAILURE:
        raise first.result
    if entry.handed_over and first is not None and not _has_expired(frame, entry):
        _busy(frame, Busy(wait=None, own=True))
    raise _not_kept(frame, entry, _why_not(entry))


def _why_not(entry: Entry) -> str:
    if not entry.key:
        return "it was redacted"
    return "it was its replacement's" if entry.handed_over else "it was too large, or the policy says result=False"


def _not_kept(frame: Frame, entry: Entry, why: str) -> ResultNotKept:
    key = entry.key or frame.claim.key
    return ResultNotKept(task=frame.delivery.task, key=key, reason=f"{why}, and the result backend does not have it")


def _state_of(frame: Frame, first: AsyncResult) -> str:
    """The first task's state. A result backend that cannot be asked is no failure of work that is done."""
    try:
        state: str = first.state
    except Exception:
        if not frame.delivery.deferrable:
            raise
        _busy_again(frame, Busy(wait=None, own=True), why="result backend away")
    return state


def _has_expired(frame: Frame, entry: Entry) -> bool:
    """Whether a result of that time would be gone from the backend by now: nobody can wait for it any more."""
    expires = frame.task.app.conf.result_expires
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
    return bool(seconds) and time.time() - entry.since > seconds


def _first_result(frame: Frame, entry: Entry) -> AsyncResult | None:
    """The first task's result, where there is a backend that could have it."""
    known = entry.task_id and not isinstance(frame.task.app.backend, DisabledBackend)
    return AsyncResult(entry.task_id, app=frame.task.app) if known else None


def _busy(frame: Frame, busy: Busy) -> NoReturn:
    policy, delivery = frame.guard.policy.on_busy, frame.delivery
    if not delivery.deferrable:
        _put_off_chunk(frame, busy)
        raise _busy_error(frame, busy)
    may_be_own = busy.own or (busy.wait is None and delivery.may_repeat)
    must_wait = may_be_own or delivery.continues or delivery.fails_on
    if must_wait or policy == "defer":
        _busy_again(frame, busy, why="busy")
    if policy == "raise":
        raise _busy_error(frame, busy)
    if policy == "follow":
        _follow(frame, busy)
    if policy == "skip":
        _skip(frame, "is being carried out by another message; this one was skipped")
    _busy_again(frame, busy, why="waited")


def _follow(frame: Frame, busy: Busy) -> NoReturn:
    """Go on after the holder, unless another message will: that one begins later than this one came."""
    following = Following.MOVED
    if busy.entry is not None:
        try:
            following = frame.ledger.follow(busy.entry, frame.claim.identity)
        except LedgerUnavailable as error:
            away(frame, error)
    if following is Following.ANOTHER:
        _skip(frame, "is being carried out, and another message follows; this one was skipped")
    _busy_again(frame, Busy(wait=None, own=busy.own), why="follows" if following is Following.NEXT else "busy")


def _skip(frame: Frame, why: str) -> NoReturn:
    reason, delivery = f"effect {frame.claim.key} {why}", frame.delivery
    frame.task.backend.mark_as_revoked(
        delivery.task_id,
        reason,
        request=frame.request,
        store_result=not ignores_result(frame.task, frame.request),
    )
    frame.guard.happened(frame, Name.EFFECT_SKIPPED, cause=_cause(frame, own=False, lives=True))
    raise Ignore(reason)


def _busy_again(frame: Frame, busy: Busy, *, why: str) -> NoReturn:
    cause = (
        _cause(frame, own=busy.own, lives=True) if why in _STANDS_BEHIND else Cause.TAKEOVER if why == "fenced" else ""
    )
    _put_off(frame, _delay(frame, busy), why=why, cause=cause, **_holder(frame, busy))


def _delay(frame: Frame, busy: Busy) -> float:
    return busy_delay(
        wait=busy.wait,
        deferrals=frame.delivery.deferrals,
        jitter=random.random(),  # noqa: S311 - jitter, not a secret
        cap=frame.guard.once.longest_delay,
    )


def _holder(frame: Frame, busy: Busy) -> dict[str, Any]:
    """Who holds a key that stays busy without a lease; a person can end that session of the database (rule 2)."""
    if busy.wait is not None or frame.delivery.deferrals < STAYS_BUSY:
        return {}
    ledger, holder = frame.ledger, None
    if is_transactional(ledger):
        with suppress(LedgerUnavailable):
            holder = ledger.holder(frame.claim.digest)
    return {} if holder is None else {"holder": holder}


def _busy_error(frame: Frame, busy: Busy) -> EffectBusy:
    return EffectBusy(task=frame.delivery.task, key=frame.claim.key, wait=busy.wait or 1.0)


def _put_off_chunk(frame: Frame, busy: Busy) -> None:
    """An item of ``chunks`` is busy: the whole message is put off; its finished items are replayed (rule 19)."""
    whole = in_chunk()
    if whole is None:
        return
    once, request = frame.guard.once, whole.request
    deferrals = int((request.headers or {}).get("effectonce_deferrals") or 0)
    delay = busy_delay(
        wait=busy.wait,
        deferrals=deferrals,
        jitter=random.random(),  # noqa: S311 - jitter, not a secret
        cap=once.longest_delay,
    )
    _send_copy(once, whole, request, delay)
    message = f"an item of this chunk is busy ({frame.claim.key}); a copy of the whole runs in {delay:.1f} s"
    raise Ignore(message)


def _put_off(frame: Frame, delay: float, *, why: str, cause: str = "", **facts: Any) -> NoReturn:
    frame.comes_again = True
    _send_copy(frame.guard.once, frame.task, frame.request, delay, cause=cause)
    frame.guard.happened(frame, Name.EFFECT_DEFERRED, why=why, seconds=round(delay, 2), cause=cause, **facts)
    message = f"effect {frame.claim.key}: {why}; a copy of this message comes in {delay:.1f} s"
    raise Ignore(message)


def _send_copy(once: Any, task: Any, request: Any, delay: float, *, cause: str = "") -> None:
    try:
        put_off(once.confirmed, task, request, delay=delay, cause=cause)
    except Exception as error:
        raise Reject(error, requeue=True) from error


def away_before_start(once: Any, task: Any, request: Any, delivery: Delivery, error: LedgerUnavailable) -> NoReturn:
    """End a delivery whose ledger could not even be opened."""
    if not delivery.deferrable:
        raise error
    delay = once.away_delay(delivery)
    _send_copy(once, task, request, delay)
    raise Ignore(str(error))


def _reused(frame: Frame, entry: Entry) -> EffectKeyReused:
    differ = list(names_that_differ(frame.fingerprint, entry.fingerprint))
    cause = _cause(frame, own=False, lives=False)
    frame.guard.happened(frame, Name.EFFECT_REUSED, cause=cause, differ=differ)
    return EffectKeyReused(
        task=frame.delivery.task,
        key=entry.key,
        recorded=entry.fingerprint[:12].hex(),
        recorded_attempt=entry.attempt.hex(),
        recorded_at=_instant(entry.since),
        received=frame.claim.fingerprint[:12].hex(),
        message_id=frame.delivery.task_id or "none: a direct call",
        differ=differ,
    )


def _poison(frame: Frame, entry: Entry) -> NoReturn:
    """Set the effect aside with this message; if the entry moved on meanwhile, look again."""
    ledger = frame.ledger
    if not frame.delivery.deferrable:
        raise _held_error(frame, entry, State.POISONED)
    try:
        poisoned = ledger.poison(entry, held_message(frame.task, frame.request))
    except LedgerUnavailable as error:
        away(frame, error)
    if not poisoned:
        _busy_again(frame, Busy(wait=None, own=True), why="busy")
    frame.guard.happened(frame, Name.EFFECT_POISONED, deaths=entry.deaths + 1)
    show_held(frame, State.POISONED)


def _hold(frame: Frame, entry: Entry) -> NoReturn:
    if not frame.delivery.deferrable:
        raise _held_error(frame, entry, entry.state)
    try:
        frame.ledger.hold(entry.digest, held_message(frame.task, frame.request))
    except LedgerUnavailable as error:
        away(frame, error)
    show_held(frame, entry.state)


def show_held(frame: Frame, state: State) -> NoReturn:
    """End a delivery whose message is kept with its effect."""
    frame.comes_again = True
    if not ignores_result(frame.task, frame.request):
        facts = {"key": frame.claim.key, "held": state.name.lower()}
        frame.task.backend.store_result(frame.delivery.task_id, facts, HELD, request=frame.request)
    message = f"effect {frame.claim.key} is held as {state.name.lower()}; its message is kept in the ledger"
    raise Ignore(message)


def _held_error(frame: Frame, entry: Entry, state: State) -> EffectHeld:
    return EffectHeld(task=frame.delivery.task, key=entry.key, state=state.name.lower(), since=_instant(entry.since))


def _owe(frame: Frame, entry: Entry, *, marked: bool) -> None:
    succeeded = entry.state is not State.FAILED
    owed(frame, digest=entry.digest, attempt=entry.attempt, marked=marked, succeeded=succeeded)


def owed(frame: Frame, *, digest: bytes, attempt: bytes, marked: bool, succeeded: bool) -> None:
    """Let this delivery owe what goes on from an effect that is settled; a call without a message owes nothing."""
    if not frame.delivery.task_id:
        return
    duty = Duty(
        ledger=frame.ledger,
        digest=digest,
        attempt=attempt,
        marked=marked,
        eager=not frame.delivery.deferrable,
        succeeded=succeeded,
        copy=partial(_copy_later, frame),
    )
    owe(frame.task, frame.request, duty)


def _copy_later(frame: Frame) -> None:
    delay = _delay(frame, Busy(wait=None, own=True))
    put_off(frame.guard.once.confirmed, frame.task, frame.request, delay=delay)
    frame.guard.happened(frame, Name.EFFECT_DEFERRED, why="continuation", seconds=round(delay, 2))


def _happened(frame: Frame, entry: Entry) -> None:
    if frame.delivery.task_id:
        note_replay(frame.request)
    _replayed(frame, entry)


def _replayed(frame: Frame, entry: Entry, **facts: Any) -> None:
    cause = _cause(frame, own=entry.identity == frame.claim.identity, lives=False)
    facts = {"first": entry.task_id, "since": _instant(entry.since), "cause": cause, **facts}
    frame.guard.happened(frame, Name.EFFECT_REPLAYED, **facts)


def _cause(frame: Frame, *, own: bool, lives: bool) -> str:
    return cause_of(frame.delivery, own=own, lives=lives).value


def _instant(since: float) -> str:
    return datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
