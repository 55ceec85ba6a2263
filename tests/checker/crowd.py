"""A made-up project of nothing but tasks: what costs the checker most, since each task is followed."""

from pathlib import Path

HEAD = """
import logging
import redis
import requests
from celery import Task, shared_task
from django.core.cache import cache
from django.core.mail import send_mail
from django.db import transaction
from django.utils import timezone

from shop.models import Order, Payment, Customer
from shop.helpers{m} import amount_of, notify_{m}, client_for

logger = logging.getLogger(__name__)
client = redis.Redis()
LIMIT = 60


class Base(Task):
    pass
"""
BODIES = [
    '''
@shared_task(bind=True, acks_late=True, time_limit=300, max_retries=5)
def charge_{n}(self, order_id, amount):
    """Charge an order."""
    order = Order.objects.select_for_update().get(pk=order_id)
    if order.status == "paid":
        logger.info("order %s is paid already", order_id)
        return None
    try:
        answer = requests.get(
            f"https://pay.example/status/{{order_id}}",
            timeout=LIMIT,
        )
        answer.raise_for_status()
    except requests.RequestException as error:
        raise self.retry(exc=error, countdown=30)
    with transaction.atomic():
        payment, created = Payment.objects.get_or_create(
            reference=f"order-{{order_id}}",
            defaults={{"amount": amount, "order": order}},
        )
        if created:
            order.status = "paid"
            order.paid_at = timezone.now()
            order.save(update_fields=["status", "paid_at"])
            transaction.on_commit(lambda: receipt_{n}.delay(order.pk))
    return payment.pk
''',
    """
@shared_task
def receipt_{n}(order_id):
    order = Order.objects.get(pk=order_id)
    customer = order.customer
    lines = []
    for line in order.lines.all():
        if line.amount:
            lines.append(f"{{line.title}}: {{amount_of(line)}}")
        else:
            lines.append(line.title)
    text = "\\n".join(lines)
    key = f"receipt:{{order_id}}"
    if not client.set(key, "1", nx=True, ex=600):
        logger.info("receipt of %s is being sent", order_id)
        return
    notify_{m}(customer, text)
    logger.info("receipt of %s: %d lines", order_id, len(lines))
""",
    """
@shared_task(ignore_result=True)
def refresh_{n}(customer_id, full=False):
    customer = Customer.objects.get(pk=customer_id)
    orders = list(customer.orders.filter(status="paid").values_list("pk", flat=True))
    total = sum(amount_of(each) for each in customer.orders.all())
    if full:
        data = {{
            "orders": orders,
            "total": str(total),
            "name": customer.name,
            "at": timezone.now().isoformat(),
        }}
        cache.set(f"customer:{{customer_id}}", data, timeout=3600)
    else:
        cache.delete(f"customer:{{customer_id}}")
    api = client_for(customer)
    result = api.get("/customers", params={{"id": customer_id}})
    if result.status_code != 200:
        logger.warning("no answer for %s", customer_id)
    return len(orders)
""",
    """
class Export{n}(Base):
    name = "export-{n}"

    def run(self, region, day):
        rows = Order.objects.filter(region=region, day=day)
        path = f"/exports/{{region}}/{{day}}.csv"
        with open(path, "w") as file:
            for row in rows:
                file.write(f"{{row.pk}};{{row.amount}}\\n")
        logger.info("exported %s", path)
        return path
""",
]
HELP = """
from django.core.mail import send_mail


def amount_of(line):
    return line.amount * line.price


def client_for(customer):
    import requests
    session = requests.Session()
    session.headers["X"] = customer.token
    return session


def notify_{m}(customer, text):
    if customer.email:
        _mail(customer.email, text)


def _mail(address, text):
    send_mail("hello", text, "a@example.com", [address])
"""

MODELS = """
from django.db import models


class Customer(models.Model):
    email = models.EmailField()


class Order(models.Model):
    status = models.CharField(max_length=3)
    customer = models.ForeignKey(Customer, on_delete=models.CASCADE)


class Payment(models.Model):
    reference = models.CharField(max_length=9, unique=True)
"""
APP = """
from celery import Celery

app = Celery("shop", broker="redis://localhost")
app.conf.task_time_limit = 300
app.conf.broker_transport_options = {"visibility_timeout": 7200}
"""


def write(folder: Path, *, modules: int) -> None:
    """Write *modules* modules of 20 tasks each, with what they call."""
    shop = folder / "shop"
    shop.mkdir()
    for name, text in (("__init__", ""), ("models", MODELS), ("celery", APP)):
        (shop / f"{name}.py").write_text(text)
    for m in range(modules):
        bodies = [BODIES[k % len(BODIES)].format(n=20 * m + k, m=m) for k in range(20)]
        (shop / f"tasks{m}.py").write_text("\n".join([HEAD.format(m=m), *bodies]))
        (shop / f"helpers{m}.py").write_text(HELP.format(m=m))
