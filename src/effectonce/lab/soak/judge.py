"""Counts what a round did, where nothing hindered a second effect: rows, calls outside, answers.

*doubled*: an order with more rows than one, with calls outside under more keys than one, or, for a letter, with more
calls than one. *lost*: no effect, though its message was accepted. *stuck*: asked for once more when all was calm, and
still without an answer, or with an answer that is an error.

Redis as broker has a hole of its own, which no guard can close: kombu takes a message out of its list before it notes
that it holds it. What is killed or cut off in that instant takes the message along. So many messages may *vanish* with
Redis as there were blows that can do this; one more is a loss. With RabbitMQ none may.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from effectonce.lab.soak.plan import Blow, Order
from effectonce.lab.soak.system import WORKERS, Ground

MAY_VANISH: Final = frozenset({Blow.WORKER, Blow.BROKER_KILL, Blow.BROKER_CUT, Blow.BROKER_REPLY, Blow.BROKER_REQUEST})
"""Blows by which a message may vanish that kombu has just taken from Redis; each worker takes one at a time."""


@dataclass(slots=True, kw_only=True)
class Count:
    """What was found: the effects of each kind by name, in words for a person."""

    effects: int = 0
    doubled: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Letters that were begun and broken off: called at most once, as the policy says."""


def count(ground: Ground, orders: tuple[Order, ...]) -> Count:
    """Count rows and calls of all *orders*."""
    rows = ground.judge.count() if ground.judge is not None else Counter[int]()
    calls = ground.outside.calls()
    found = Count()
    for order in orders:
        for task in effects_of(order):
            times = _times(task, order, rows, calls)
            what = f"{task} {order.number}"
            found.effects += 1
            if times > 1:
                found.doubled.append(f"{what}: {times} times")
            elif times == 0:
                (found.skipped if task == "letter" else found.lost).append(what)
    return found


def effects_of(order: Order) -> tuple[str, ...]:
    """The tasks that an order carries out; a charge sends a note from its body."""
    return (order.task, "note") if order.task == "charge" else (order.task,)


def _times(task: str, order: Order, rows: Counter[int], calls: Mapping[tuple[str, int], list[str]]) -> int:
    if task == "charge":
        return rows[order.number]
    keys = calls.get((task, order.number), [])
    return len(keys) if task == "letter" else len(set(keys))


def excused(broker: str, struck: Counter[Blow]) -> int:
    """How many messages may vanish through no fault of ours."""
    if broker != "redis":
        return 0
    return sum(number for blow, number in struck.items() if blow in MAY_VANISH) * WORKERS
