"""The shop's app with tasks of the other policies: `Exclusive` and `Natural`."""

import os
import time
from typing import Any

from effectonce import Exclusive, Natural, effect
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
