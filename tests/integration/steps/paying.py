"""The app of the tests of steps: it reserves, pays at a server outside, and writes a mail."""

import json
import os
import urllib.request
from typing import Any

from effectonce import Done, Leased, NotDone, Transactional, effect
from tests.integration.worker.shop import LEASE, app, began, charges, gate, metadata, once, outside

__all__ = ["LEASE", "app", "charges", "metadata", "once"]

PAYMENTS = os.environ["SHOP_PAYMENTS"]


def post(order: str, key: str) -> dict[str, Any]:
    """Charge an order."""
    body = json.dumps({"order": order}).encode()
    asked = urllib.request.Request(PAYMENTS, data=body, headers={"Idempotency-Key": key})  # noqa: S310 - a test's server
    with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - likewise
        return dict(json.load(answer))


def note(what: str) -> str:
    outside(what)
    return what


def act(order: str) -> str:
    """The body of all these tasks."""
    began(f"pay:{order}")
    effect.step("reserve", note, f"reserve:{order}")
    paid = effect.step("pay", post, order, str(effect.idempotency_key("pay")))
    gate(f"paid-{order}")
    effect.step("mail", note, f"mail:{order}")
    return f"charge {paid['charge']}"


@app.task(once=Leased("pay:{order}"))
def pay(order: str) -> str:
    return act(order)


@app.task(once=Leased("pay-held:{order}", on_unknown="hold"))
def pay_held(order: str) -> str:
    return act(order)


@app.task(once=Leased("pay-skipped:{order}", on_unknown="skip"))
def pay_skipped(order: str) -> str:
    began(f"pay:{order}")
    paid = effect.step("pay", post, order, str(effect.idempotency_key("pay")))
    return "paid" if paid else "maybe paid"


@app.task(once=Leased("pay-here:{order}"))
def pay_here(order: str) -> str:
    """Only one step of it is held."""
    began(f"pay:{order}")
    effect.step("reserve", note, f"reserve:{order}")
    effect.options(on_unknown="hold").step("pay", post, order, str(effect.idempotency_key("pay")))
    return "paid"


@app.task(once=Leased("plain-held:{order}", on_unknown="hold"))
def plain_held(order: str) -> str:
    """A body that acts outside without a step."""
    began(f"pay:{order}")
    post(order, str(effect.idempotency_key("pay")))
    gate(f"paid-{order}")
    return "paid"


def look_up(asking: Any, step: Any) -> Any:
    """Ask the payment server whether it has seen the key of this step."""
    with urllib.request.urlopen(f"{PAYMENTS}/{asking.idempotency_key(step.name)}", timeout=10) as answer:  # noqa: S310
        found = json.load(answer)
    return Done(found) if found else NotDone


@app.task(once=Leased("pay-asked:{order}", on_unknown="hold", reconcile=look_up))
def pay_asked(order: str) -> str:
    return act(order)


@app.task(once=Transactional("no-steps:{order}"))
def no_steps(order: str) -> None:
    effect.step("pay", post, order, "key")


@app.task
def total(parts: list[str]) -> str:
    began("total")
    return ", ".join(sorted(parts))


@app.task
def echo(what: str) -> str:
    return f"got {what}"
