"""One task's guard: its policy, compiled once, and the plan of each attempt."""

import inspect
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from celery._state import get_current_task
from celery.app.task import Context
from celery.exceptions import Ignore, TaskPredicate

from effectonce.app import requests
from effectonce.app.bypass import bypass_of
from effectonce.app.encoding import encode_failure, encode_result
from effectonce.app.frames import Frame
from effectonce.app.overdue import is_late
from effectonce.app.steps import step_plan
from effectonce.domain.claims import Claim
from effectonce.domain.deliveries import Delivery
from effectonce.domain.fingerprints import NOT_TAKEN, Fingerprint
from effectonce.domain.keys import Key, KeySource
from effectonce.domain.modes import Mode
from effectonce.domain.policies import UNSET, Exclusive, Leased, Natural, Policy, Transactional, Unique
from effectonce.errors import KeyInvalid, LedgerUnsuitable
from effectonce.events import Name
from effectonce.ports import LedgerStore, is_transactional
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.natural import NaturalAttempt
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.transactional import TransactionalAttempt

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce


_NO_SPAN: Final[AbstractContextManager[None]] = nullcontext()


class Guard:
    """What is known about a guarded task before it is called."""

    def __init__(self, once: "EffectOnce", task: Any, policy: Policy) -> None:
        self.once = once
        self.policy = policy
        self.task_name = task.name
        self._source = KeySource.compile(policy, task.name, body_signature(task))

    @property
    def takes_parent_key(self) -> bool:
        """Whether a send of this task inside a guarded body is named by its parent's key."""
        return self.policy.key is None

    @property
    def may_run_twice(self) -> bool:
        """Whether two bodies of one key harm nobody."""
        return isinstance(self.policy, (Natural, Unique))

    @property
    def unique(self) -> Unique | None:
        """What is promised about a second send, if anything is."""
        return self.policy if isinstance(self.policy, Unique) else self.policy.at_send

    @property
    def may_be_nameless(self) -> bool:
        """Whether a call runs also if nothing names its effect."""
        return isinstance(self.policy, Natural) and self.policy.key is None and not self.policy.key_at_call

    def ledger_of(self, key: Key) -> LedgerStore:
        """Where this task's effect of that key is recorded."""
        leased = isinstance(self.policy, (Exclusive, Unique))
        return self.once.leases_of(key) if leased else self.once.ledger_of(key)

    @staticmethod
    def request_of(task: Any, outer: Frame | None) -> Any:
        """The request of this call; a body that calls its own task still sees the message's on the stack."""
        request, frame = task.request, outer
        while frame is not None:
            if frame.request is request:
                return Context()
            frame = frame.outer
        return request

    def check_key_at_call(self) -> None:
        """Raise KeyInvalid when a call may not bring a key because the task names its own."""
        if self.policy.key is not None and not self.policy.key_at_call:
            raise KeyInvalid(
                task=self.task_name,
                part="effect_key",
                reason="the task names its own key; give the policy key_at_call=True to take keys from calls",
            )

    def check_generation(self) -> None:
        """Raise KeyInvalid when a call asks for a run once more of what runs every time anyway."""
        if not self.policy.each_tick_its_own:
            kind = type(self.policy).__name__
            reason = f"an {kind} body runs every time; a generation of its own would run beside it"
            raise KeyInvalid(task=self.task_name, part="effect_again", reason=reason)

    @property
    def mode(self) -> Mode:
        """How far the policy acts now; all the way where the settings cannot be read, so that it says why not."""
        if bypass_of(self.once) is not None:
            return Mode.OFF
        own = self.policy.mode
        return self.once.mode if own is UNSET else Mode(own)

    @property
    def no_fingerprint(self) -> Fingerprint:
        """That of a call whose arguments are not compared."""
        return NOT_TAKEN

    def fingerprint_of(self, args: Any, kwargs: Any) -> Fingerprint:
        """The fingerprint of this call's arguments."""
        return self._source.fingerprint(args, kwargs)

    def named(self, text: str) -> Iterator[Key]:
        """The keys of this task that read *text*; see `KeySource.named`."""
        return self._source.named(text)

    def key_of_message(self, message_id: str) -> Key:
        """A name for a call that has none: no other call has it."""
        return self._source.key_of_message(message_id)

    def key_of(self, task: Any, request: Any, args: Any, kwargs: Any) -> Key:
        """The key of this call, from its arguments and the headers of its message."""
        headers = request.headers or {}
        namespace = self.once.settings.namespace
        return self._source.key(
            args,
            kwargs,
            namespace=namespace if isinstance(namespace, str) else str(namespace(task, request)),
            generation=headers.get(requests.AGAIN),
            tick=headers.get(requests.TICK),
            entry=headers.get(requests.ENTRY),
            at_call=headers.get(requests.KEY),
            parent=headers.get(requests.PARENT),
            message_id=request.id,
            http=headers.get(requests.HTTP),
        )

    def _name_eager(self, request: Any, outer: Frame | None) -> None:
        """What a body sends eagerly crosses no wire, and is named by it all the same; its retry keeps the name."""
        nameless = self.policy.key is None and not self.policy.key_at_call
        if nameless and request.is_eager and outer is not None and outer.entered:
            headers = request.headers or {}
            if requests.PARENT not in headers:
                request.headers = {**headers, requests.PARENT: outer.name_next()}

    def frame(self, task: Any, request: Any, args: Any, kwargs: Any, outer: Frame | None) -> Frame:
        """Set out on one attempt; raises KeyInvalid or KeyMissing when the call names no effect."""
        self._name_eager(request, outer)
        key = self.key_of(task, request, args, kwargs)
        frame = self.bare_frame(task, request, key, self.fingerprint_of(args, kwargs), outer)
        frame.late = is_late(frame)
        if frame.late:  # its claim is committed first, and what dies with it is for a person to judge
            frame.delivery, frame.claim = replace(frame.delivery, flagged=True), replace(frame.claim, holds=True)
        frame.attempt = self._attempt(frame)
        return frame

    def bare_frame(self, task: Any, request: Any, key: Key, fingerprint: Fingerprint, outer: Frame | None) -> Frame:
        """A call of this key, without an attempt yet."""
        delivery = requests.read_delivery(task, request)
        return Frame(
            task=task,
            request=request,
            guard=self,
            key=key,
            fingerprint=fingerprint,
            claim=self._claim(task, request, key, delivery, fingerprint.to_bytes()),
            delivery=delivery,
            outer=outer,
        )

    def _claim(self, task: Any, request: Any, key: Key, delivery: Delivery, fingerprint: bytes) -> Claim:
        settings, policy = self.once.settings, self.policy
        return Claim(
            digest=key.digest,
            key=str(key),
            attempt=os.urandom(8),
            identity=delivery.identity if delivery.task_id else os.urandom(16),
            task_id=delivery.task_id,
            fingerprint=fingerprint,
            lease=_or(getattr(policy, "lease", UNSET), settings.lease_seconds),
            max_takeovers=_or(policy.max_takeovers, settings.max_takeovers),
            keep=_or(policy.keep_seconds, settings.keep_seconds),
            retries=delivery.retries,
            reenter=delivery.reenter,
            time_limit=self._time_limit(task, request),
            recurs=isinstance(self.policy, Exclusive),
            holds=isinstance(policy, Leased) and policy.on_unknown == "hold" and policy.reconcile is None,
        )

    def _time_limit(self, task: Any, request: Any) -> float | None:
        """The hard limit of this call in seconds: the message's own, the task's, or the app's; None without one."""
        limit = (request.timelimit or (None,))[0] or task.time_limit or self._limit_of_app
        return float(limit) if limit else None

    @cached_property
    def _limit_of_app(self) -> float | None:
        """Read once, as the pool does that enforces it: a look into the configuration costs as much as a digest."""
        limit: float | None = self.once.app.conf.task_time_limit
        return limit

    def _attempt(self, frame: Frame) -> LeasedAttempt | TransactionalAttempt | NaturalAttempt:
        plan = self.plan(frame)
        if self.may_run_twice:
            return NaturalAttempt(plan)
        ledger = frame.ledger
        if not isinstance(self.policy, Transactional):
            return LeasedAttempt(plan, ledger, self.once.keeper_of(ledger))
        if not is_transactional(ledger):
            facts = {"ledger": ledger.name, "policy": "Transactional", "task": self.task_name}
            raise LedgerUnsuitable(**facts, reason="it is not a SQL database")
        return TransactionalAttempt(
            plan, ledger, outer=self._open_work(frame.outer, ledger), allow_escape=self.policy.allow_escape
        )

    def _open_work(self, outer: Frame | None, ledger: LedgerStore) -> Any:
        """The transaction that a call made inside a body joins, if that body has one on this same ledger."""
        if outer is None or not outer.entered or outer.guard.once is not self.once:
            return None
        if outer.ledger is not ledger:
            return None
        return outer.attempt.work if isinstance(outer.attempt, TransactionalAttempt) else None

    def plan(self, frame: Frame) -> Plan:
        """What the attempt of this call sets out with."""
        task = frame.task
        return Plan(
            claim=frame.claim,
            delivery=frame.delivery,
            encode=lambda result: self._encode(task, frame, result),
            encode_failure=lambda error: encode_failure(task, error),
            remember=self.policy.remember,
            ignored=(Ignore,),
            controls=(TaskPredicate,),
            replaced=lambda: frame.replaced,
            handed_on=lambda: frame.handed_on,
            emit=self.once.emit,
            scope=frame.key.scope,
            place=lambda: self._place_of(frame),
            dispatch=lambda stored: self.once.dispatcher_of(frame.ledger).dispatch(stored),
            patience=frame.claim.lease if in_chunk() is None else 0.0,
            steps=step_plan(frame),
            waits=self.policy.on_busy == "wait",
        )

    def happened(self, frame: Frame, name: Name, **facts: Any) -> None:
        """Emit an event about this call."""
        self.plan(frame).happened(name, fence=frame.attempt.fence, **facts)

    def _place_of(self, frame: Frame) -> str:
        """The name of the ledger that has this call's entry; asked only when something happened to it."""
        has_entry = self.mode is not Mode.OFF and not self.may_run_twice
        return frame.ledger.name if has_entry else ""

    def span_of(self, frame: Frame) -> AbstractContextManager[None]:
        """A span of a trace for this attempt, where traces are asked for."""
        if not self.once.settings.traces:
            return _NO_SPAN
        from effectonce.observers.traces import attempt_span  # noqa: PLC0415 - an extra

        claim, delivery = frame.claim, frame.delivery
        return attempt_span(
            key=claim.key,
            scope=frame.key.scope,
            task=self.task_name,
            task_id=delivery.task_id,
            attempt=claim.attempt.hex(),
        )

    def _encode(self, task: Any, frame: Frame, result: Any) -> Encoded:
        """Encode before the commit; keep what must go on, whatever its size (rules 6 and 14)."""
        if result is None:
            return Encoded(payload=None)
        ignored = ignores_result(task, frame.request)
        wanted = not ignored if self.policy.result is None else self.policy.result
        if not wanted and ignored and not _goes_on(frame):
            return Encoded(payload=None, kept=False)
        payload = encode_result(task, result)
        fits = wanted and len(payload) <= self.once.settings.result_max_bytes
        if fits or _goes_on(frame):
            return Encoded(payload=payload)
        return Encoded(payload=None, kept=False)


def body_signature(task: Any) -> inspect.Signature:
    """The signature of a task's body, without ``self``."""
    run = getattr(task, "_orig_run", None) or task.run
    if inspect.isclass(task):
        raw = inspect.getattr_static(task, "run")
        signature = inspect.signature(run)
        if isinstance(raw, staticmethod):
            return signature
        return signature.replace(parameters=list(signature.parameters.values())[1:])
    return inspect.signature(run)


def _goes_on(frame: Frame) -> bool:
    """Whether something waits for this outcome, of either kind: then its result is kept, whatever its size."""
    return frame.delivery.continues or frame.delivery.fails_on


def ignores_result(task: Any, request: Any) -> bool:
    """Whether nobody will read the result: the call's own word before the task's."""
    said = vars(request).get("ignore_result") if hasattr(request, "__dict__") else None
    return bool(task.ignore_result if said is None else said)


def _or(value: Any, default: Any) -> Any:
    return default if value is UNSET else value


def in_chunk() -> Any:
    """The ``celery.starmap`` message that this thread is working on, None outside one."""
    task = get_current_task()
    inside = task is not None and task.name == "celery.starmap"
    return task if inside and task.request.id and not task.request.is_eager else None
