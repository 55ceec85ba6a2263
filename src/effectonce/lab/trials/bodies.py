"""The bodies of all trials' tasks, written once for every contender.

Each notes in the diary that it began and ended, and writes one row for its intent: before the rest of the work
(``charge``), or after it (``slow``).
"""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from celery import current_task

from effectonce.lab.contenders.contender import Contender
from effectonce.lab.trials.diary import Diary, now
from effectonce.lab.trials.effects import Effects

LARGE: Final = 100_000
"""Bytes of a result that no ledger keeps."""

Bodies = Mapping[str, tuple[Any, Sequence[str]]]
"""By name of the task: its body, and the arguments that name its intent."""


class World:
    """What bodies have at hand."""

    def __init__(self, contender: Contender, effects: Effects, diary: Diary) -> None:
        self._contender = contender
        self._effects = effects
        self._diary = diary

    @contextmanager
    def body(self, intent: Any) -> Iterator[None]:
        """Note that a body runs."""
        message = current_task.request.id or ""
        self._diary.note("began", intent=str(intent), message=message)
        try:
            yield
        finally:
            self._diary.note("ended", intent=str(intent), message=message)

    def act(self, intent: Any, seconds: float = 0.0) -> str:
        """Take effect, and do the rest of the work."""
        self._contender.write(self._effects, str(intent), now())
        self._diary.note("acted", intent=str(intent))
        time.sleep(seconds)
        return f"done {intent}"

    def is_first(self, intent: str) -> bool:
        """Tell whether no body of *intent* began before this one."""
        return self._diary.count("began", intent) == 1

    def has(self, intent: str) -> bool:
        """Tell whether *intent* can be seen to have taken effect."""
        return self._effects.count()[intent] > 0


def ordinary(world: World, edition: int) -> Bodies:
    """Work that takes a while, and what follows it."""

    def charge(order: Any, seconds: float = 0.0) -> str:
        with world.body(order):
            return world.act(order, seconds)

    def charge_with_note(order: Any, seconds: float = 0.0, note: str = "none") -> str:
        del note
        return charge(order, seconds)

    def slow(order: str, seconds: float = 0.0) -> str:
        with world.body(order):
            time.sleep(seconds)
            return world.act(order)

    def total(parts: Any, order: str) -> str:
        del parts
        return charge(order)

    def confirm(order: str) -> str:
        with world.body(order):
            if not world.has(f"{order} placed"):
                raise LookupError(order)
            return world.act(order)

    def bulky(order: str) -> str:
        charge(order)
        return "x" * LARGE

    return {
        "charge": (charge if edition == 1 else charge_with_note, ["order"]),
        "slow": (slow, ["order"]),
        "total": (total, ["order"]),
        "confirm": (confirm, ["order"]),
        "bulky": (bulky, ["order"]),
    }


def faulty(world: World) -> Bodies:
    """Bodies that fail."""

    def stop_once(order: str) -> str:
        with world.body(order):
            if world.is_first(order):
                raise ValueError(order)
            return world.act(order)

    def stall_once(order: str) -> str:
        with world.body(order):
            if world.is_first(order):
                time.sleep(60)
            return world.act(order)

    def unsayable(order: str) -> Any:
        with world.body(order):
            world.act(order)
            return object()

    def deadly(order: str) -> None:
        with world.body(order):
            os.kill(os.getpid(), signal.SIGKILL)

    each = {"stop_once": stop_once, "stall_once": stall_once, "unsayable": unsayable, "deadly": deadly}
    return {name: (body, ["order"]) for name, body in each.items()}


def named(world: World) -> Bodies:
    """Work whose name is the question: defaults, and one function name in two modules."""

    def ship(order: str, carrier: str = "post") -> str:
        with world.body(f"{order} {carrier}"):
            return world.act(f"{order} {carrier}")

    def send_bill(order: str) -> str:
        with world.body(f"bill {order}"):
            return world.act(f"bill {order}")

    def send_mail(order: str) -> str:
        with world.body(f"mail {order}"):
            return world.act(f"mail {order}")

    send_bill.__name__ = send_mail.__name__ = "send"
    return {
        "ship": (ship, ["order", "carrier"]),
        "ship_by_carrier": (ship, ["carrier"]),
        "billing.send": (send_bill, ["order"]),
        "mail.send": (send_mail, ["order"]),
    }


def bound(world: World, child: Any) -> Mapping[str, Any]:
    """Bodies that get their task: they retry, send children, are replaced."""

    def retry_once(self: Any, order: str, countdown: float = 0.0) -> str:
        with world.body(order):
            if not self.request.retries:
                raise self.retry(countdown=countdown)
            return world.act(order)

    def fan_out(self: Any, order: str) -> str:
        with world.body(order):
            for number in range(3):
                child.delay(f"{order} {number}")
                if number == 1 and not self.request.retries:
                    raise self.retry(countdown=0)
            return world.act(order)

    def swap(self: Any, order: str, seconds: float = 0.0) -> str:
        with world.body(f"{order} first"):
            time.sleep(seconds)
            raise self.replace(child.si(order))

    def hold_then_retry(self: Any, order: str, seconds: float = 0.0) -> str:
        with world.body(order):
            if world.is_first(order):
                time.sleep(seconds)
                raise self.retry(countdown=0)
            return world.act(order)

    return {"retry_once": retry_once, "fan_out": fan_out, "swap": swap, "hold_then_retry": hold_then_retry}
