"""What becomes of a step that an earlier attempt began.

A step is one act outside, by name. Its start is committed before the act and its end after it, each on condition of
the fence. So an attempt that goes on after a death finds of each step one of three things: its end, and then its
result is given back; no start, and then it runs; a start without an end, and then nobody here knows whether the act
took place. The outside may know (`reconcile`); where it does not either, the task has said what to do (`on_unknown`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, assert_never

OnUnknown = Literal["retry", "hold", "skip"]

LONGEST_NAME: Final = 200
"""Characters of a step's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step as its ledger knows it.

    *attempt* and *fence* are those of the attempt that began it last. *began*, *ended*: the ledger's clock, epoch
    seconds; *ended* is None while its end is not known. *result* as encoded; *kept* tells one that could not be
    kept from None. *holds*: without an end it makes its effect wait for a person. *skipped*: it counts as done
    though nobody saw its end.
    """

    name: str
    attempt: bytes
    fence: int
    began: float
    ended: float | None = None
    result: bytes | None = None
    kept: bool = True
    holds: bool = False
    skipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a step ended; see `Step` for the meanings."""

    result: bytes | None = None
    kept: bool = True
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """An answer of ``reconcile``, or a person's: it took place, with this *result*."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class NotDone:
    """An answer of ``reconcile``: it did not take place, and may be done now."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An answer of ``reconcile``: the outside cannot say either."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A person's word about an effect that is held: it failed for good, and *message* says how."""

    message: str


Answer = Done | NotDone | Unknown


def answer_of(said: Any) -> Answer:
    """What a ``reconcile`` said, given as an object or as the bare class; raises TypeError for anything else."""
    if said is NotDone or said is Unknown:
        return NotDone() if said is NotDone else Unknown()
    if isinstance(said, (Done, NotDone, Unknown)):
        return said
    message = f"reconcile must answer Done(result), NotDone or Unknown, not {type(said).__name__}"
    raise TypeError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run it. *again*: an earlier attempt had begun it."""

    again: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveBack:
    """It has ended: give its result back."""

    step: Step


@dataclass(frozen=True, slots=True)
class Skip:
    """It was begun and counts as done (at most once)."""


@dataclass(frozen=True, slots=True)
class Hold:
    """A person has to say."""


Course = Run | GiveBack | Skip | Hold


def course(step: Step | None, answer: Answer, on_unknown: OnUnknown) -> Course:
    """Say what to do about a step, *answer* being what the outside says of one that was begun and not ended."""
    if step is None:
        return Run(again=False)
    if step.ended is not None:
        return GiveBack(step=step)
    if isinstance(answer, NotDone):
        return Run(again=True)
    match on_unknown:
        case "retry":
            return Run(again=True)
        case "skip":
            return Skip()
        case "hold":
            return Hold()
    assert_never(on_unknown)


def is_open(step: Step) -> bool:
    """Tell whether it was begun and its end is not known."""
    return step.ended is None


def waits_for_a_person(steps: Iterable[Step], *, holds: bool) -> bool:
    """Say whether an effect is unknown whose holder died, *holds* being its task's word (rules 17 and 18).

    It is with a holding step that was begun and not ended; and, where the task says hold, without any step: the body
    may have acted outside of one.
    """
    recorded: Sequence[Step] = tuple(steps)
    return any(is_open(step) and step.holds for step in recorded) or (holds and not recorded)


def by_name(steps: Iterable[Step]) -> Mapping[str, Step]:
    """Steps by their names."""
    return {step.name: step for step in steps}
