"""What one attempt sets out with."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from effectonce.domain.causes import Cause
from effectonce.domain.claims import Claim, Granted, Outcome, Refused, State, judge
from effectonce.domain.deliveries import Delivery
from effectonce.domain.outbox import Stored
from effectonce.domain.steps import OnUnknown, Step
from effectonce.errors import EffectOnceError
from effectonce.events import Emit, Event, Name
from effectonce.ports import Sleep
from effectonce.runtime.signals import Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A result as bytes; *kept* False: it may not be stored in the ledger."""

    payload: bytes | None
    kept: bool = True


def _leave_to_relays(_stored: Sequence[Stored]) -> None:
    """Send nothing now: what is stored is sent by whoever finds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """How a task's steps are run.

    *reconcile* asks the outside about a step, None being a body that recorded none. *encode* and *decode* make bytes
    of results and back.
    """

    on_unknown: OnUnknown = "retry"
    reconcile: Callable[[Step | None], Any] | None = None
    encode: Callable[[Any], bytes] = bytes
    decode: Callable[[bytes], Any] = bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One attempt: what it claims, because of which delivery, and how its outcome is written.

    *controls*: exceptions by which a body steers its worker; they are never a failure to be remembered. *ignored*:
    those by which it says that it ended well without a result. *replaced*: whether such
    a body sent a replacement; *handed_on*: one under this same key. *patience*: seconds that a call which cannot be
    put off waits. *waits*: one that can be put off waits too, before it is.
    *dispatch* sends what was stored, and never raises.
    """

    claim: Claim
    delivery: Delivery
    encode: Callable[[Any], Encoded]
    encode_failure: Callable[[Exception], bytes]
    remember: tuple[type[Exception], ...]
    ignored: tuple[type[BaseException], ...]
    controls: tuple[type[BaseException], ...]
    replaced: Callable[[], bool]
    handed_on: Callable[[], bool]
    emit: Emit
    patience: float
    dispatch: Callable[[Sequence[Stored]], None] = _leave_to_relays
    steps: StepPlan = StepPlan()
    waits: bool = False
    scope: str = ""
    place: Callable[[], str] = str
    clock: Callable[[], float] = time.monotonic
    sleep: Sleep = time.sleep

    def completed(self, encoded: Encoded) -> Outcome:
        """The outcome of a body that returned."""
        return Outcome(state=State.COMPLETED, result=encoded.payload, kept=encoded.kept, keep=self.claim.keep)

    def is_remembered(self, error: BaseException) -> bool:
        """Tell whether the policy remembers this failure; what steers the worker and what is ours it never does."""
        return isinstance(error, self.remember) and not isinstance(error, (*self.controls, EffectOnceError))

    def failed(self, error: Exception) -> Outcome:
        """The outcome of a body that failed in a way the policy remembers."""
        return Outcome(state=State.FAILED, result=self.encode_failure(error), keep=self.claim.keep)

    def ended_by_ignore(self) -> Outcome:
        """The outcome of a body that ended by `Ignore`: its result, if any, is the replacement's (rules 5 and 6)."""
        state = State.RELEASED if self.handed_on() else State.COMPLETED
        return Outcome(state=state, handed_over=self.replaced(), continued=True, kept=False, keep=self.claim.keep)

    def refused(self, answer: Refused) -> Refusal:
        """What an attempt whose claim was refused tells its caller; what stands in the way is an event."""
        state = "" if answer.entry is None else answer.entry.state.name.lower()
        self.happened(Name.CLAIM_REFUSED, state=state or "held in a transaction")
        return Refusal(judge(answer, self.claim))

    def was_granted(self, granted: Granted) -> None:
        """Emit that the claim is ours, or that it was another's who is gone."""
        if granted.takeover:
            cause = Cause.TAKEOVER.value
            self.happened(Name.CLAIM_TAKEN_OVER, fence=granted.fence, deaths=granted.deaths, cause=cause)
        else:
            self.happened(Name.CLAIM_GRANTED, fence=granted.fence, deaths=granted.deaths)

    def happened(self, name: Name, fence: int = 0, **facts: Any) -> None:
        """Emit an event about this attempt."""
        self.emit(
            Event(
                name=name,
                key=self.claim.key,
                task=self.delivery.task,
                task_id=self.delivery.task_id,
                attempt=self.claim.attempt.hex(),
                fence=fence,
                digest=self.claim.digest,
                scope=self.scope,
                place=self.place(),
                facts=facts,
            )
        )
