"""Steps as a body writes them: ``once.effect.step(name, call, ...)``, and how a task's policy runs them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, cast

from effectonce.app.encoding import decode_result, encode_result
from effectonce.domain.policies import Leased
from effectonce.domain.steps import OnUnknown, Step
from effectonce.errors import StepInvalid
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.plan import StepPlan
from effectonce.runtime.unguarded import UnguardedAttempt

if TYPE_CHECKING:
    from effectonce.app.frames import Frame

P = ParamSpec("P")
R = TypeVar("R")

_WAYS = ("retry", "hold", "skip")

_NO_STEPS: Final = StepPlan()
"""Of a body that has none."""


def step_plan(frame: "Frame") -> StepPlan:
    """How the steps of this call are run; results go through the app's result serializer."""
    policy, task = frame.guard.policy, frame.task
    if not isinstance(policy, Leased):
        return _NO_STEPS
    return StepPlan(
        on_unknown=policy.on_unknown,
        reconcile=None if policy.reconcile is None else partial(_reconcile, policy.reconcile, frame),
        encode=partial(encode_result, task),
        decode=partial(decode_result, task),
    )


def _reconcile(ask: Callable[[Any, Step | None], Any], frame: "Frame", step: Step | None) -> Any:
    from effectonce.app.current import Effect  # noqa: PLC0415 - it offers the steps of this module

    return ask(Effect(frame), step)


class StepOptions:
    """Options of the steps that are called on it."""

    def __init__(
        self, frame: "Frame", *, on_unknown: OnUnknown | None = None, not_done: tuple[type[Exception], ...] = ()
    ) -> None:
        self._frame = frame
        self._on_unknown = on_unknown
        self._not_done = not_done

    def step(self, name: str, call: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Carry out ``call(*args, **kwargs)`` as the step *name*, unless it has been; answers its result.

        The start is committed before the call and the end after it, on condition of the fence. A step that has ended is
        not called again, in no attempt: its result comes from the ledger, as the result serializer makes it. Raises
        FenceRefused when the claim was lost before the call, StepInvalid for a name that this attempt has used or a
        result that cannot be kept, and what the call raises.
        """
        attempt = self._frame.attempt
        policy = self._frame.guard.policy
        if isinstance(policy, Leased) and isinstance(attempt, UnguardedAttempt):
            return cast("R", attempt.step(partial(call, *args, **kwargs)))
        if not (isinstance(policy, Leased) and isinstance(attempt, LeasedAttempt)):
            reason = f"the body of a {type(policy).__name__} task has no steps"
            raise StepInvalid(task=self._frame.delivery.task, key=self._frame.claim.key, step=str(name), reason=reason)
        act = partial(call, *args, **kwargs)
        return cast("R", attempt.step(name, act, on_unknown=self._on_unknown, not_done=self._not_done))


def checked_options(frame: "Frame", on_unknown: OnUnknown | None, not_done: tuple[type[Exception], ...]) -> StepOptions:
    """Options that can be used; raises StepInvalid for others."""
    faults = []
    if on_unknown not in {None, *_WAYS}:
        faults.append(f"on_unknown={on_unknown!r} must be one of {', '.join(map(repr, _WAYS))}")
    given: Any = not_done
    if not (isinstance(given, tuple) and all(isinstance(one, type) and issubclass(one, Exception) for one in given)):
        faults.append(f"not_done={not_done!r} must be a tuple of exception classes")
    if faults:
        reason = "; ".join(faults)
        raise StepInvalid(task=frame.delivery.task, key=frame.claim.key, step="options", reason=reason)
    return StepOptions(frame, on_unknown=on_unknown, not_done=not_done)
