"""What is done after a request."""

from celery import shared_task

from effectonce import Leased, Transactional, effect
from shop.extensions import db
from shop.models import Order, Payment


@shared_task(once=Transactional("charge:{order_id}"))
def charge(order_id: int) -> str:
    """Take the money: the payment, the order and the ledger's entry commit together, or none of them."""
    order = db.session.get_one(Order, order_id)
    order.payments.append(Payment(amount=order.total))
    order.is_paid = True
    return f"charged {order.total}"


@shared_task(once=Leased("receipt:{order_id}", lease=30))
def send_receipt(order_id: int) -> str:
    """Send a receipt; a repeat after a crash carries the same key, so that it can be told as a repeat."""
    return f"receipt {order_id} under {effect.idempotency_key('mail')}"
