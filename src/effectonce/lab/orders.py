"""Which orders a demo has, how long charging each takes, and which of them meet trouble."""

import random
from dataclasses import dataclass
from enum import Enum
from typing import Final

FEWEST: Final = 4
"""One order of each kind."""


class Trouble(Enum):
    """What happens while an order is being charged."""

    NONE = "none"
    SLOW = "its body is longer than the broker waits"
    CHILD = "its pool process is killed"
    WORKER = "its worker is killed whole"


# A slow body is longer than the broker waits, and shorter than twice that: else an unguarded one never comes to rest.
_SECONDS: Final = {Trouble.SLOW: 5.0, Trouble.CHILD: 2.0, Trouble.WORKER: 2.0}
_SHARE: Final = {Trouble.SLOW: (30, 3), Trouble.CHILD: (20, 3), Trouble.WORKER: (30, 2)}
"""One in how many, and the most: each takes seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order. The message is repeated *gap* seconds after the first, or, if None, when the first is done."""

    number: int
    amount: int
    seconds: float
    gap: float | None
    trouble: Trouble = Trouble.NONE


def plan_orders(number: int, *, seed: int) -> list[Order]:
    """Return *number* orders, at least one for each trouble, the same ones for the same *seed*."""
    dice = random.Random(seed)  # noqa: S311 - a plan that can be repeated, not a secret
    troubles = [
        trouble for trouble, (one_in, most) in _SHARE.items() for _ in range(max(1, min(number // one_in, most)))
    ]
    kinds = [*troubles, *[Trouble.NONE] * (number - len(troubles))]
    dice.shuffle(kinds)
    return [
        Order(
            number=index,
            amount=dice.randrange(500, 20_000),
            seconds=_SECONDS.get(kind) or dice.uniform(0.01, 0.05),
            # The repeat of a slow one must not take the place in the pool that the broker's copy needs.
            gap=dice.uniform(0.005, 0.05) if index % 2 and kind is not Trouble.SLOW else None,
            trouble=kind,
        )
        for index, kind in enumerate(kinds, start=1)
    ]
