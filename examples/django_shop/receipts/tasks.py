"""A mail is outside of every database: one sender at a time, and one key that the mail server can know it by."""

from celery import shared_task
from django.core.mail import EmailMessage

from effectonce import Leased, effect


@shared_task(once=Leased("receipt:{order_id}", lease=30))
def send_receipt(customer: str, order_id: int) -> None:
    """Send the receipt; a repeat after a crash carries the same message id, so that it can be told as a repeat."""
    key = effect.idempotency_key("mail")
    EmailMessage(
        f"Your order {order_id}", "Thank you.", "shop@example.com", [customer], headers={"Message-ID": f"<{key}@shop>"}
    ).send()
