"""What is done after a request."""

from celery import shared_task
from receipts.tasks import send_receipt

from effectonce import Transactional
from orders.models import Order


@shared_task(once=Transactional("charge:{order_id}"))
def charge(order_id: int) -> str:
    """Take the money: payment, order, the receipt's message and the ledger's entry commit together, or none."""
    order = Order.objects.select_for_update().get(pk=order_id)
    order.payments.create(amount=order.total)
    order.is_paid = True
    order.save()
    send_receipt.delay(order.customer, order.pk)
    return f"charged {order.total}"
