"""More hard shapes: wrappers, classes, settings and constants between a mistake and what makes it one."""

from pathlib import Path

import pytest

from tests.checker.projects import found, lay

APP = """\
from celery import Celery
app = Celery("shop", broker="redis://localhost")
"""
CLIENTS = """\
import redis
def connect():
    return redis.Redis()
client = connect()
store = redis.Redis(host="x")
"""

SHAPES: dict[str, tuple[dict[str, str], set[str]]] = {
    "EO104 the id of the task through a local name": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.clients import store\n"
            "@shared_task(bind=True)\ndef work(self, a):\n"
            "    mine = self.request.id\n    key = f'seen:{mine}'\n"
            "    if not store.set(key, 1, nx=True, ex=90000):\n        return\n    print(a)\n",
        },
        {"EO104"},
    ),
    "EO202 late by a partial of another module": (
        {
            "shop__kinds": "from functools import partial\nfrom celery import shared_task\n"
            "late = partial(shared_task, acks_late=True)\n",
            "shop__tasks": "from shop.kinds import late\n@late(time_limit=60)\ndef work(a):\n    print(a)\n",
        },
        {"EO202"},
    ),
    "EO203 the flag through a helper's local name": (
        {
            "shop__tasks": "from celery import shared_task\n@shared_task(bind=True)\ndef work(self, a):\n"
            "    info = self.request.delivery_info\n    again = info.get('redelivered')\n"
            "    if again:\n        return\n    print(a)\n",
        },
        {"EO203"},
    ),
    "EO205 everything is retried, by the options of a base class": (
        {
            "shop__base": "from celery import Task\nclass Stubborn(Task):\n    autoretry_for = (Exception,)\n"
            "    max_retries = None\n",
            "shop__tasks": "from celery import shared_task\nfrom shop.base import Stubborn\nimport requests\n"
            "@shared_task(base=Stubborn)\ndef push(a):\n"
            "    requests.post('https://x.example/orders', json=a)\n    print(a)\n",
        },
        {"EO108", "EO205"},
    ),
    "EO208 a delay beyond RabbitMQ's consumer timeout, from the settings": (
        {
            "shop__celery": "from celery import Celery\napp = Celery('shop')\n"
            "app.config_from_object('django.conf:settings', namespace='CELERY')\n",
            "shop__settings": "CELERY_BROKER_URL = 'amqp://guest@localhost//'\nHOUR = 3600\nLATER = 2 * HOUR\n",
            "shop__tasks": "from shop.celery import app\nfrom django.conf import settings\n"
            "@app.task(time_limit=60)\ndef remind(a):\n    print(a)\n"
            "def go(a):\n    remind.apply_async((a,), countdown=settings.LATER)\n",
        },
        {"EO208"},
    ),
    "EO303 looked at and set by two methods' worth of names": (
        {
            "shop__tasks": "from celery import shared_task\nfrom django.core.cache import cache as kv\n"
            "KEY = 'sync-running'\n"
            "@shared_task(time_limit=60)\ndef sync():\n    busy = kv.get(KEY)\n    if busy:\n        return\n"
            "    kv.set(KEY, 1, 300)\n    print(1)\n",
        },
        {"EO303"},
    ),
    "EO309 asked of the workers by an app of another module": (
        {
            "shop__tasks": "from shop.celery import app as the_app\n@the_app.task(bind=True)\ndef reindex(self):\n"
            "    running = the_app.control.inspect().active() or {}\n"
            "    if any(each['name'] == self.name for tasks in running.values() for each in tasks):\n        return\n"
            "    print(1)\n",
        },
        {"EO309"},
    ),
    "EO405 the answer of an insert is not looked at": (
        {
            "shop__tasks": "from celery import shared_task\nfrom django.db import connection\nimport stripe\n"
            "@shared_task\ndef pay(key, cents):\n    with connection.cursor() as cursor:\n"
            "        cursor.execute('insert into op(key) values (%s) on conflict do nothing', [key])\n"
            "    stripe.Charge.create(amount=cents, idempotency_key=key)\n",
        },
        {"EO405"},
    ),
    "EO408 added to a value in a repository class": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.accounts import Accounts\n"
            "@shared_task(autoretry_for=(OSError,), max_retries=3)\ndef credit(account, cents):\n"
            "    Accounts().add(account, cents)\n",
            "shop__accounts": "from django.db.models import F\nfrom shop.models import Account\nclass Accounts:\n"
            "    def add(self, account, cents):\n"
            "        Account.objects.filter(pk=account).update(balance=F('balance') + cents)\n",
            "shop__models": "from django.db import models\nclass Account(models.Model):\n"
            "    balance = models.IntegerField()\n",
        },
        {"EO408"},
    ),
    "EO502 a session of another module": (
        {
            "shop__db": "from sqlalchemy.orm import sessionmaker\nSession = sessionmaker()\nsession = Session()\n",
            "shop__tasks": "from celery import shared_task\n@shared_task\ndef index(pk):\n    print(pk)\n",
            "shop__views": "from shop.db import session\nfrom shop.tasks import index\ndef save(user):\n"
            "    session.add(user)\n    session.flush()\n    index.delay(user.id)\n    session.commit()\n",
        },
        {"EO502"},
    ),
    "EO503 the variable of a loop in what runs after the commit": (
        {
            "shop__tasks": "from celery import shared_task\n@shared_task\ndef push(pk):\n    print(pk)\n",
            "shop__views": "from django.db import transaction as tx\nfrom shop import tasks\ndef save(items):\n"
            "    for item in items:\n        tx.on_commit(lambda: tasks.push.delay(item.pk))\n",
        },
        {"EO503"},
    ),
    "EO507 sent once more after an error, in a wrapper": (
        {
            "shop__tasks": "from celery import shared_task\n@shared_task\ndef push(pk):\n    print(pk)\n",
            "shop__send": "from shop.tasks import push as target\nfrom kombu.exceptions import OperationalError\n"
            "def send(pk):\n    try:\n        target.delay(pk)\n"
            "    except OperationalError:\n        target.delay(pk)\n",
        },
        {"EO507"},
    ),
    "EO509 a task that sends itself under another name": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.steps import step\n"
            "@shared_task\ndef walk(cursor):\n    following = step(cursor)\n    walk.delay(following)\n",
            "shop__steps": "def step(cursor):\n    return cursor + 1\n",
        },
        {"EO509"},
    ),
    "EO510 a receiver of another module that sends on every save": (
        {
            "shop__tasks": "from celery import shared_task\nfrom django.core.mail import send_mail\n"
            "@shared_task\ndef mail_bug(pk):\n    send_mail('a', 'b', None, [pk])\n",
            "shop__receivers": "from django.db.models.signals import post_save\nfrom django.dispatch import receiver\n"
            "from shop.tasks import mail_bug\n@receiver(post_save, sender='shop.Bug')\n"
            "def saved(instance, **kwargs):\n    mail_bug.delay(instance.pk)\n",
        },
        {"EO510"},
    ),
    "EO701 beats in two files of one deployment, the scheduler not shared": (
        {
            "shop__celery": APP,
            "beat.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: beat}\nspec:\n  replicas: 2\n"
            "  strategy: {type: Recreate}\n  template:\n    spec:\n      containers:\n"
            "        - args: [celery, -A, shop, beat]\n",
        },
        {"EO701"},
    ),
    "EO704 a limit in the code, a grace period in the deployment": (
        {
            "shop__celery": APP + "from shop.limits import LONGEST\napp.conf.task_time_limit = LONGEST\n",
            "shop__limits": "MINUTE = 60\nLONGEST = 30 * MINUTE\n",
            "compose.yaml": "services:\n  worker:\n    command: celery -A shop worker\n    stop_grace_period: 1m\n",
        },
        {"EO704"},
    ),
}
"""Each project, and the codes that must be among what is found in it."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_mistake_is_found_through_what_stands_between(shape: str, tmp_path: Path) -> None:
    files, expected = SHAPES[shape]
    lay(tmp_path, **{"shop____init__": "", "shop__celery": APP, "shop__clients": CLIENTS, **files})
    codes = {code for code, _ in found(tmp_path)}
    assert codes == expected
