"""How a call waits for its turn: one that cannot be put off (rule 19), and a message whose policy says so.

A direct or eager call has no message that could come again. It looks again, ever more slowly, for up to a lease, and
then the refusal stands. So does a message under ``on_busy="wait"``, which is put off after that. A copy of the holder's
own message is put off at once: it would take a place in the pool to wait for itself. Between two looks nothing is held,
no connection either.
"""

from collections.abc import Callable
from typing import TypeVar

from effectonce.domain.claims import Busy, Verdict
from effectonce.runtime.plan import Plan
from effectonce.runtime.signals import Refusal

T = TypeVar("T")

_FIRST = 0.01
_SLOWEST = 0.5


def take_turn(plan: Plan, step: Callable[[], T], *, deadline: float | None = None) -> T:
    """Run *step*; while it is refused as busy and this call waits for its turn, wait and run it again.

    *deadline*: the plan's clock at which waiting ends, where it began before now.
    """
    if plan.delivery.deferrable and not plan.waits:
        return step()
    if deadline is None:
        deadline = plan.clock() + plan.patience
    pause = _FIRST
    while True:
        try:
            return step()
        except Refusal as refusal:
            left = deadline - plan.clock()
            if left <= 0 or not _is_worth_waiting(plan, refusal.verdict):
                raise
        plan.sleep(min(pause, left))
        pause = min(pause * 2, _SLOWEST)


def _is_worth_waiting(plan: Plan, verdict: Verdict) -> bool:
    return isinstance(verdict, Busy) and not (verdict.own and plan.delivery.deferrable)
