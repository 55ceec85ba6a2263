"""The Celery app and its tasks."""

import os

from celery import Celery

from effectonce import EffectOnce, Leased, Transactional
from shop.database import Order, Payment, SessionLocal

_BROKER = os.environ.get("SHOP_BROKER", "redis://localhost")

app = Celery("shop", broker=_BROKER, backend=_BROKER)
once = EffectOnce(app, ledger=SessionLocal)


@app.task(once=Transactional("charge:{order_id}"))
def charge(order_id: int) -> str:
    """Take the money: the payment, the order and the ledger's entry commit together, or none of them."""
    order = once.session.get_one(Order, order_id)
    order.payments.append(Payment(amount=order.total))
    order.is_paid = True
    return f"charged {order.total}"


@app.task(once=Leased("receipt:{order_id}", lease=30))
def send_receipt(order_id: int) -> str:
    """Send a receipt; a repeat after a crash carries the same key, so that it can be told as a repeat."""
    return f"receipt {order_id} under {once.effect.idempotency_key('mail')}"
