"""The tasks of all trials, written once; a contender says how they are defined and how they take effect.

Each notes in the diary that its body began and ended, and writes one row for its intent. ``seconds`` is how long the
rest of the work takes, after the row.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from celery import current_task

from effectonce.lab.contenders.contender import Contender
from effectonce.lab.trials.diary import Diary, now
from effectonce.lab.trials.effects import Effects
from effectonce.lab.trials.place import Place


class World:
    """What bodies have at hand."""

    def __init__(self, contender: Contender, effects: Effects, diary: Diary) -> None:
        self._contender = contender
        self._effects = effects
        self._diary = diary

    @contextmanager
    def body(self, intent: str) -> Iterator[None]:
        """Note that a body runs."""
        message = current_task.request.id or ""
        self._diary.note("began", intent=intent, message=message)
        try:
            yield
        finally:
            self._diary.note("ended", intent=intent, message=message)

    def act(self, intent: str, seconds: float = 0.0) -> str:
        """Take effect, and do the rest of the work."""
        self._contender.write(self._effects, intent, now())
        self._diary.note("acted", intent=intent)
        time.sleep(seconds)
        return f"done {intent}"


def define_tasks(app: Any, place: Place, contender: Contender, world: World) -> dict[str, Any]:
    """Define them all; answers them by name."""
    options = dict(place.task_options)
    keyed = _keyed(world, place.edition)

    def define(body: Any, **more: Any) -> Any:
        return contender.task(app, body, **{**options, **more})

    tasks = {name: define(body, name=name, fields=fields) for name, (body, fields) in keyed.items()}
    binding = {"retry_once": _retry_once(world), "fan_out": _fan_out(world, tasks["charge"]), "swap": _swap(world)}
    tasks |= {name: define(body, name=name, fields=["order"], bind=True) for name, body in binding.items()}
    tasks["hold"] = define(keyed["charge"][0], name="hold", fields=["order"], leased=True)
    tasks["tick"] = define(_tick(world), name="tick", fields=[])
    return tasks


def _keyed(world: World, edition: int) -> dict[str, tuple[Any, Sequence[str]]]:
    return {**_work(world, edition), **_oddities(world), **_namesakes(world)}


def _work(world: World, edition: int) -> dict[str, tuple[Any, Sequence[str]]]:
    def charge(order: str, seconds: float = 0.0) -> str:
        with world.body(order):
            return world.act(order, seconds)

    def charge_with_note(order: str, seconds: float = 0.0, note: str = "none") -> str:
        del note
        return charge(order, seconds)

    def total(parts: Any, order: str) -> str:
        del parts
        with world.body(order):
            return world.act(order)

    def after(result: Any, order: str) -> str:
        del result
        with world.body(order):
            return world.act(order)

    return {
        "charge": (charge if edition == 1 else charge_with_note, ["order"]),
        "total": (total, ["order"]),
        "after": (after, ["order"]),
    }


def _oddities(world: World) -> dict[str, tuple[Any, Sequence[str]]]:
    def ship(order: str, carrier: str = "post") -> str:
        with world.body(f"{order}:{carrier}"):
            return world.act(f"{order}:{carrier}")

    def stop_once(order: str, again: bool) -> str:  # noqa: FBT001 - a task's argument
        with world.body(order):
            if not again:
                message = "the first try fails"
                raise ValueError(message)
            return world.act(order)

    def unsayable(order: str) -> Any:
        with world.body(order):
            world.act(order)
            return object()

    return {
        "ship": (ship, ["order", "carrier"]),
        "by_carrier": (ship, ["carrier"]),
        "stop_once": (stop_once, ["order"]),
        "unsayable": (unsayable, ["order"]),
    }


def _namesakes(world: World) -> dict[str, tuple[Any, Sequence[str]]]:
    def send_bill(order: str) -> str:
        with world.body(f"bill {order}"):
            return world.act(f"bill {order}")

    def send_mail(order: str) -> str:
        with world.body(f"mail {order}"):
            return world.act(f"mail {order}")

    send_bill.__name__ = send_mail.__name__ = "send"
    return {"billing.send": (send_bill, ["order"]), "mail.send": (send_mail, ["order"])}


def _retry_once(world: World) -> Any:
    def retry_once(self: Any, order: str, countdown: float = 0.0) -> str:
        with world.body(order):
            if not self.request.retries:
                raise self.retry(countdown=countdown)
            return world.act(order)

    return retry_once


def _fan_out(world: World, child: Any) -> Any:
    def fan_out(self: Any, order: str) -> str:
        with world.body(order):
            for number in range(3):
                child.delay(f"{order}/{number}")
                if number == 1 and not self.request.retries:
                    raise self.retry(countdown=0)
            return world.act(order)

    return fan_out


def _swap(world: World) -> Any:
    def swap(self: Any, order: str, seconds: float = 0.0, swapped: bool = False) -> str:  # noqa: FBT001, FBT002 - a task's argument
        with world.body(order):
            if not swapped:
                time.sleep(seconds)
                raise self.replace(self.si(order, swapped=True))
            return world.act(order)

    return swap


def _tick(world: World) -> Any:
    def tick() -> str:
        with world.body("tick"):
            return world.act("tick")

    return tick
