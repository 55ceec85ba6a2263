"""The shop's app with tasks of the other policies: `Exclusive` and `Natural`."""

import os
import time
from typing import Any

from effectonce import Exclusive, Leased, Natural, Transactional, Unique, effect
from tests.integration.worker.shop import FOLDER, app, began, charges, gate, metadata, once, outside

__all__ = ["app", "charges", "metadata", "once"]


def crossed(line: str, what: str) -> None:
    """Note that a body came in or went out; one short write with O_APPEND is whole."""
    with (FOLDER / "crossings").open("a") as file:
        file.write(f"{line} {what} {os.getpid()}\n")


def hold(what: str, name: str, pause: float = 0) -> None:
    """A body: between its coming and its going no other one of *what* may be in."""
    crossed("in", what)
    began(f"{what}:{name}")
    gate(f"{what}-{name}")
    time.sleep(pause)
    crossed("out", what)


@app.task(once=Exclusive("sync"))
def sync(name: str, pause: float = 0) -> str:
    hold("sync", name, pause)
    return f"synced {name}"


@app.task(once=Exclusive("queued:{queue}", on_busy="defer"))
def queued(queue: str, name: str, pause: float = 0) -> str:
    hold(f"queued-{queue}", name, pause)
    return f"did {name}"


@app.task(once=Exclusive("checked", on_busy="defer"))
def checked(name: str) -> str:
    """A body that asks before it acts."""
    hold("checked", name)
    effect.ensure_current()
    outside(f"checked:{name}")
    return f"checked {name}"


@app.task(bind=True, once=Exclusive("retried"), max_retries=3)
def retried(self: Any, name: str, failures: int) -> str:
    hold("retried", name)
    if self.request.retries < failures:
        raise self.retry(countdown=0.1)
    return f"at try {self.request.retries}"


@app.task(once=Exclusive("failing"))
def failing(name: str) -> None:
    hold("failing", name)
    raise ValueError(name)


@app.task(once=Natural("natural:{name}"))
def natural(name: str) -> str:
    began(f"natural:{name}")
    gate(f"natural-{name}")
    outside(f"natural:{name} {effect.idempotency_key('set')}")
    return f"set {name}"


@app.task(once=Natural())
def nameless(name: str) -> str:
    began(f"nameless:{name}")
    gate(f"nameless-{name}")
    return f"set {name}"


@app.task(once=Exclusive("waiting", on_busy="wait"))
def waiting(name: str) -> str:
    hold("waiting", name)
    return f"did {name}"


@app.task(once=Exclusive("rebuild", on_busy="follow"))
def rebuild(name: str) -> str:
    hold("rebuild", name)
    return f"rebuilt for {name}"


@app.task(once=Unique("report:{day}"))
def report(day: str) -> str:
    began(f"report:{day}")
    gate(f"report-{day}")
    return f"report of {day}"


@app.task(once=Unique("begun:{day}", until="started"))
def begun(day: str) -> str:
    began(f"begun:{day}")
    gate(f"begun-{day}")
    return f"begun {day}"


@app.task(once=Unique("fragile:{day}", lease=2))
def fragile(day: str) -> str:
    began(f"fragile:{day}")
    return f"done {day}"


@app.task(bind=True, once=Leased("paid:{order}", at_send=Unique(until="done")), max_retries=3)
def paid(self: Any, order: str, failures: int = 0) -> str:
    began(f"paid:{order}")
    if self.request.retries < failures:
        raise self.retry(countdown=0.5)
    gate(f"paid-{order}")
    return f"paid {order}"


@app.task(bind=True, once=Transactional("orders:{order}"), max_retries=3)
def orders(self: Any, order: str, failures: int = 0) -> list[bool]:
    """Asks twice for the report of the day, and fails after that as often as it is told to."""
    asked = [report.delay(order).duplicate for _ in range(2)]
    if self.request.retries < failures:
        raise self.retry(countdown=0.1)
    return asked
