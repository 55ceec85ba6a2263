"""What will happen in a soak: drawn from the seed before anything starts, so that a seed names one plan.

What becomes of it does depend on the machine: which message a blow meets is left to the moment.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Literal

Broker = Literal["redis", "rabbitmq"]
Store = Literal["postgresql", "sqlite", "redis"]

ROUND: Final = 30.0
"""Seconds for which a round sends and strikes; then it comes to rest."""
_CALM: Final = 2.0
_LONG: Final = 0.12
"""The share of bodies that are longer than a lease and than the broker waits."""


class Blow(Enum):
    """A way to strike; the value is what a report calls it."""

    CHILD = "pool process killed"
    WORKER = "worker killed whole"
    NAP = "worker stopped past its leases"
    CHILD_NAP = "pool process stopped past its leases"
    STORE_REPLY = "reply of the store lost"
    STORE_REQUEST = "request to the store lost"
    STORE_CUT = "connections to the store cut"
    STORE_KILL = "store killed"
    FILE_HELD = "store's file locked"
    BROKER_REPLY = "reply of the broker lost"
    BROKER_REQUEST = "request to the broker lost"
    BROKER_CUT = "connections to the broker cut"
    BROKER_KILL = "broker killed"


_WEIGHTS: Final = {
    Blow.CHILD: 8,
    Blow.WORKER: 3,
    Blow.NAP: 3,
    Blow.CHILD_NAP: 3,
    Blow.STORE_REPLY: 5,
    Blow.STORE_REQUEST: 3,
    Blow.STORE_CUT: 2,
    Blow.STORE_KILL: 2,
    Blow.FILE_HELD: 4,
    Blow.BROKER_REPLY: 4,
    Blow.BROKER_REQUEST: 2,
    Blow.BROKER_CUT: 2,
    Blow.BROKER_KILL: 3,
}
_OVER_A_NETWORK: Final = {Blow.STORE_REPLY, Blow.STORE_REQUEST, Blow.STORE_CUT, Blow.STORE_KILL}


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Where a round takes place."""

    broker: Broker
    store: Store

    @property
    def name(self) -> str:
        """The two in words."""
        return f"{self.broker} + {self.store}"


ALL: Final = tuple(
    System(broker=broker, store=store)
    for broker in ("redis", "rabbitmq")
    for store in ("postgresql", "sqlite", "redis")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One effect that is asked for *at* so many seconds, and again after each of *repeats* (seconds)."""

    number: int
    task: str
    at: float
    seconds: float
    retries: int
    repeats: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One blow *at* so many seconds; *aim* chooses among what can be struck then."""

    at: float
    blow: Blow
    aim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One system with what is sent and what strikes; *renews* is the keeper of visibility."""

    number: int
    system: System
    renews: bool
    orders: tuple[Order, ...]
    strikes: tuple[Strike, ...]


def plan_rounds(*, rounds: int, seed: int, systems: Sequence[System] = ALL, seconds: float = ROUND) -> list[Round]:
    """Return the plan; every system comes once before any comes again."""
    dice = random.Random(seed)  # noqa: S311 - a plan that can be repeated, not a secret
    plan: list[Round] = []
    deck: list[System] = []
    for number in range(1, rounds + 1):
        deck = deck or dice.sample(systems, len(systems))
        plan.append(_round(number, deck.pop(), dice, seconds))
    return plan


def _round(number: int, system: System, dice: random.Random, seconds: float) -> Round:
    return Round(
        number=number,
        system=system,
        renews=dice.random() < 0.5,  # noqa: PLR2004 - a coin
        orders=tuple(_orders(system, dice, seconds)),
        strikes=tuple(_strikes(system, dice, seconds)),
    )


def _orders(system: System, dice: random.Random, seconds: float) -> list[Order]:
    # A file has one writer: what waits for it comes back later and later.
    gap = 0.8 if system.store == "sqlite" else 0.4
    tasks = ("mail", "letter") if system.store == "redis" else ("charge", "charge", "mail", "letter")
    orders: list[Order] = []
    at = 0.0
    while (at := at + dice.expovariate(1 / gap)) < seconds:
        task = dice.choice(tasks)
        holds_file = task == "charge" and system.store == "sqlite"
        long = dice.random() < _LONG
        orders.append(
            Order(
                number=len(orders) + 1,
                task=task,
                at=at,
                seconds=dice.uniform(3.5, 6.0) if long and not holds_file else dice.uniform(0.01, 0.3),
                retries=dice.choice((0, 0, 0, 1, 2)),
                repeats=tuple(dice.uniform(0.0, 8.0) for _ in range(dice.choice((0, 1, 1, 2)))),
            )
        )
    return orders


def _strikes(system: System, dice: random.Random, seconds: float) -> list[Strike]:
    ways = {blow: weight for blow, weight in _WEIGHTS.items() if _can_strike(blow, system)}
    strikes, at = [], _CALM
    while (at := at + dice.uniform(0.5, 2.5)) < seconds:
        (blow,) = dice.choices(list(ways), list(ways.values()))
        strikes.append(Strike(at=at, blow=blow, aim=dice.randrange(1_000_000)))
    return strikes


def _can_strike(blow: Blow, system: System) -> bool:
    if blow in _OVER_A_NETWORK:
        return system.store != "sqlite"
    return blow is not Blow.FILE_HELD or system.store == "sqlite"
