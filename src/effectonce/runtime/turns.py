"""How a call that cannot be put off waits for its turn (rule 19).

A direct or eager call has no message that could come again. It looks again, ever more slowly, for up to a lease, and
then the refusal stands.
"""

from collections.abc import Callable
from typing import TypeVar

from effectonce.domain.claims import Busy
from effectonce.runtime.plan import Plan
from effectonce.runtime.signals import Refusal

T = TypeVar("T")

_FIRST = 0.01
_SLOWEST = 0.5


def take_turn(plan: Plan, step: Callable[[], T]) -> T:
    """Run *step*; while it is refused as busy and the delivery cannot be put off, wait and run it again."""
    if plan.delivery.deferrable:
        return step()
    deadline = plan.clock() + plan.patience
    pause = _FIRST
    while True:
        try:
            return step()
        except Refusal as refusal:
            left = deadline - plan.clock()
            if not isinstance(refusal.verdict, Busy) or left <= 0:
                raise
        plan.sleep(min(pause, left))
        pause = min(pause * 2, _SLOWEST)
