"""The steps of one attempt: what runs, what is given back, and what nobody knows.

The start of a step is committed before its act, the end after it, each on condition of the fence. What a kill leaves:
before the start is committed, nothing; before the end is, a start without an end, and `domain.steps.course` says what
the next attempt does about it. A start or an end that the ledger cannot take is tried again while the lease is
trusted. A holder that no longer trusts its lease begins nothing.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, assert_never

from effectonce import crashpoints
from effectonce.domain.claims import Granted
from effectonce.domain.steps import (
    LONGEST_NAME,
    Answer,
    Done,
    End,
    GiveBack,
    Hold,
    NotDone,
    OnUnknown,
    Run,
    Skip,
    Step,
    Unknown,
    answer_of,
    by_name,
    course,
    is_open,
)
from effectonce.errors import EffectOnceError, FenceRefused, LedgerUnavailable, StepInvalid
from effectonce.events import Name
from effectonce.ports import LedgerStore
from effectonce.runtime.keeper import Held
from effectonce.runtime.plan import Plan
from effectonce.runtime.signals import Away, Fenced, Undecided

logger = logging.getLogger("effectonce")

Act = Callable[[], Any]


class Steps:
    """The steps of one attempt that holds *granted*."""

    def __init__(self, plan: Plan, store: LedgerStore, granted: Granted, held: Held) -> None:
        self._plan = plan
        self._how = plan.steps
        self._store = store
        self._granted = granted
        self._held = held
        self._past: Mapping[str, Step] = {}
        self._named: set[str] = set()
        self._acting: dict[str, OnUnknown] = {}
        self._recorded = False

    def look_back(self) -> Done | None:
        """Find out what earlier attempts left; raises Undecided where a person has to say (rule 18).

        Costs a round trip, and only an attempt that is not the first. Answers Done when the outside says that the body
        is done altogether.
        """
        if self._granted.attempts <= 1:
            return None
        self._past = by_name(self._insist(lambda: self._store.steps(self._granted.digest)))
        self._recorded = bool(self._past)
        asks = self._how.on_unknown == "hold" and self._how.reconcile is not None
        for step in self._past.values():
            if is_open(step) and (step.holds or asks):
                self._face(step)
        if not self._past and self._granted.deaths and self._how.on_unknown == "hold":
            return self._face_no_step()
        return None

    def run(self, name: str, act: Act, *, on_unknown: OnUnknown | None, not_done: tuple[type[Exception], ...]) -> Any:
        """Carry out the step *name* as the past and the task say; *not_done*: errors after which nothing was done."""
        self._take_name(name)
        how = on_unknown or self._how.on_unknown
        step = self._past.get(name)
        answer = self._asked_of(step) if step is not None and is_open(step) else Unknown()
        if isinstance(answer, Done) and step is not None:
            return self._record(step.name, answer.result)
        taken = course(step, answer, how)
        match taken:
            case Run():
                return self._act(name, act, how=how, not_done=not_done)
            case GiveBack(step=ended):
                return self._give_back(ended)
            case Skip():
                self._plan.happened(Name.EFFECT_UNKNOWN, fence=self._granted.fence, step=name, on_unknown="skip")
                self._end(name, End(kept=True, skipped=True))
                return None
            case Hold():
                raise Undecided(name)
        assert_never(taken)

    @property
    def are_unknown(self) -> bool:
        """Whether an attempt that ends here without an outcome may have acted in a way that a person must judge."""
        if any(how == "hold" for how in self._acting.values()):
            return True
        return self._how.on_unknown == "hold" and not self._recorded

    def _take_name(self, name: Any) -> None:
        if not (isinstance(name, str) and 0 < len(name) <= LONGEST_NAME):
            raise self._invalid(name, f"its name must be text of 1 to {LONGEST_NAME} characters")
        if name in self._named:
            raise self._invalid(name, "this attempt has had a step of that name; put what differs into the name")
        self._named.add(name)

    def _invalid(self, name: object, reason: str) -> StepInvalid:
        return StepInvalid(task=self._plan.delivery.task, key=self._plan.claim.key, step=str(name), reason=reason)

    def _act(self, name: str, act: Act, *, how: OnUnknown, not_done: tuple[type[Exception], ...]) -> Any:
        self._begin(name, holds=how == "hold" and self._how.reconcile is None)
        self._acting[name] = how
        try:
            result = act()
        except EffectOnceError:
            raise
        except Exception as error:
            if isinstance(error, not_done):
                self._cancel(name)
                raise
            answer = self._judged(name, error, how=how)
            if answer is None:
                raise
            result = answer.result
        return self._record(name, result)

    def _judged(self, name: str, error: Exception, *, how: OnUnknown) -> Done | None:
        """A step that raised may have acted; the task's word, or the outside, can say that it did not (rule 18).

        Answers Done when it took place after all, None when the error is the body's.
        """
        if self._plan.is_remembered(error):
            self._end(name, End(kept=False))
            return None
        if how != "hold":
            self._acting.pop(name)
            return None
        step = Step(name=name, attempt=self._granted.attempt, fence=self._granted.fence, began=0.0)
        answer = self._asked_of(step)
        match answer:
            case Done():
                return answer
            case NotDone():
                self._cancel(name)
                return None
            case Unknown():
                raise Undecided(name) from error

    def _face(self, step: Step) -> None:
        """Decide about a step of the past before the body runs, which might not come by it any more."""
        answer = self._asked_of(step)
        match answer:
            case Done(result=result):
                self._record(step.name, result)
            case NotDone():
                self._cancel(step.name)
            case Unknown():
                raise Undecided(step.name)

    def _face_no_step(self) -> Done | None:
        answer = Unknown() if self._how.reconcile is None else self._ask_outside(None)
        if isinstance(answer, Unknown):
            raise Undecided(None)
        return answer if isinstance(answer, Done) else None

    def _asked_of(self, step: Step) -> Answer:
        return Unknown() if self._how.reconcile is None else self._ask_outside(step)

    def _ask_outside(self, step: Step | None) -> Answer:
        """Ask the task's reconcile. It may fail as anything outside may; then the outside could not say."""
        reconcile = self._how.reconcile
        if reconcile is None:
            return Unknown()
        try:
            return answer_of(reconcile(step))
        except Exception:
            logger.exception("reconcile failed for effect %s; its answer counts as Unknown", self._plan.claim.key)
            return Unknown()

    def _give_back(self, step: Step) -> Any:
        if not step.kept:
            raise self._invalid(step.name, "it is done, but its result could not be kept; return plain values")
        return None if step.result is None else self._how.decode(step.result)

    def _record(self, name: str, result: Any) -> Any:
        """Write the end; what a body gets is what a later attempt would get, after the serializer."""
        try:
            payload = None if result is None else self._how.encode(result)
        except EffectOnceError as error:
            self._end(name, End(kept=False))
            reason = f"it is done, but its result ({type(result).__name__}) cannot be encoded; return plain values"
            raise self._invalid(name, reason) from error
        self._end(name, End(result=payload))
        return None if payload is None else self._how.decode(payload)

    def _begin(self, name: str, *, holds: bool) -> None:
        crashpoints.crash_point("step.begin.before")
        if not self._is_trusted or not self._insist(lambda: self._store.begin_step(self._granted, name, holds=holds)):
            self._plan.happened(Name.FENCE_REFUSED, fence=self._granted.fence, step=name)
            raise FenceRefused(key=self._plan.claim.key, fence=self._granted.fence, attempt=self._granted.attempt.hex())
        self._recorded = True
        crashpoints.crash_point("step.begin.after")

    def _end(self, name: str, end: End) -> None:
        """Write an end. Past the act there is no way back: what cannot be written ends the attempt as a signal."""
        crashpoints.crash_point("step.end.before")
        try:
            written = self._insist(lambda: self._store.end_step(self._granted, name, end))
        except LedgerUnavailable as error:
            raise Away(error) from error
        if not written:
            self._plan.happened(Name.FENCE_REFUSED, fence=self._granted.fence, step=name)
            raise Fenced
        self._acting.pop(name, None)
        crashpoints.crash_point("step.end.after")
        ended = Step(
            name=name,
            attempt=self._granted.attempt,
            fence=self._granted.fence,
            began=0.0,
            ended=0.0,
            result=end.result,
            kept=end.kept,
            skipped=end.skipped,
        )
        self._past = {**self._past, name: ended}

    def _cancel(self, name: str) -> None:
        try:
            written = self._insist(lambda: self._store.cancel_step(self._granted, name))
        except LedgerUnavailable as error:
            raise Away(error) from error
        if not written:
            raise Fenced
        self._acting.pop(name, None)
        self._past = {each: step for each, step in self._past.items() if each != name}

    @property
    def _is_trusted(self) -> bool:
        return self._held.is_trusted(self._plan.clock())

    def _insist(self, question: Callable[[], Any]) -> Any:
        """Ask while the lease is trusted; the store answers a second asking as the first."""
        pause = 0.05
        while True:
            try:
                return question()
            except LedgerUnavailable:
                if not self._is_trusted:
                    raise
            self._plan.sleep(pause)
            pause = min(pause * 2, 1.0)
