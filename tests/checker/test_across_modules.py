"""Hard shapes: what a rule looks for is spread over modules, behind aliases, re-exports, base classes and constants."""

from pathlib import Path

import pytest

from tests.checker.projects import found, lay

APP = """\
from celery import Celery
app = Celery("shop", broker="redis://localhost")
"""
CLIENTS = """\
from redis import Redis
store = Redis.from_url("redis://localhost")
LOCK_SECONDS = 60
"""
MODELS = """\
from django.db import models


class Base(models.Model):
    class Meta:
        abstract = True


class Payment(Base):
    order_id = models.IntegerField()
    cents = models.IntegerField()


class Processed(Base):
    key = models.CharField(max_length=80)
"""

SHAPES: dict[str, tuple[dict[str, str], list[str]]] = {
    "EO101 money moved two calls away": (
        {
            "shop__tasks": "from .celery import app as celery_app\nfrom .billing import settle as finish\n"
            "@celery_app.task\ndef close(order):\n    finish(order)\n",
            "shop__billing": "from shop.gateway import pay\ndef settle(order):\n    pay(order)\n",
            "shop__gateway": "import stripe\ndef pay(order):\n    stripe.Charge.create(amount=order)\n",
        },
        ["EO101"],
    ),
    "EO102 a key made up by a function of another module": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.clients import store\nfrom shop import keys\n"
            "@shared_task\ndef sync(a):\n    key = keys.fresh(a)\n"
            "    if not store.set(key, '1', nx=True, ex=7200):\n        return\n    print(a)\n",
            "shop__keys": "import uuid as u\ndef fresh(a):\n    token = u.uuid4()\n    return f'sync:{token}'\n",
        },
        ["EO102"],
    ),
    "EO103 a key with the clock of another module": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.clients import store\nfrom shop.keys import of\n"
            "@shared_task\ndef sync(a):\n"
            "    if not store.set(of(a), '1', nx=True, ex=7200):\n        return\n    print(a)\n",
            "shop__keys": "from datetime import datetime\ndef of(a):\n    return f'sync:{a}:{datetime.now()}'\n",
        },
        ["EO103"],
    ),
    "EO105 a salted hash behind a helper": (
        {
            "shop__tasks": "from celery import shared_task\nfrom .clients import store\nfrom .keys import of\n"
            "@shared_task\ndef sync(a):\n"
            "    if not store.set(of(a), '1', nx=True, ex=7200):\n        return\n    print(a)\n",
            "shop__keys": "def of(a):\n    digest = hash(a)\n    return str(digest)\n",
        },
        ["EO105"],
    ),
    "EO201 late by the settings, and the insert in a service": (
        {
            "shop__celery": APP + "app.config_from_object('shop.limits')\n",
            "shop__limits": "task_acks_late = True\ntask_reject_on_worker_lost = True\n",
            "shop__tasks": "from shop.celery import app\nfrom shop.services import Bonus\n"
            "@app.task\ndef bonus(user):\n    Bonus().grant(user)\n",
            "shop__services": "from shop.models import Payment\nclass Bonus:\n    def grant(self, user):\n"
            "        Payment.objects.create(order_id=user, cents=5)\n",
        },
        ["EO101", "EO201", "EO207"],
    ),
    "EO206 a delay and a timeout, both constants of other modules": (
        {
            "shop__celery": APP + "from shop.limits import SEEN\n"
            "app.conf.broker_transport_options = {'visibility_timeout': SEEN}\n",
            "shop__limits": "MINUTE = 60\nSEEN = 10 * MINUTE\nLATER = 2 * SEEN\n",
            "shop__tasks": "from shop.celery import app\n@app.task\ndef remind(pk): print(pk)\n",
            "shop__views": "from shop.limits import LATER\nfrom shop import tasks\n"
            "def go(pk):\n    tasks.remind.apply_async((pk,), countdown=LATER)\n",
        },
        ["EO206"],
    ),
    "EO207 a base class sets the limit, the settings the timeout": (
        {
            "shop__celery": APP + "app.conf.update(broker_transport_options={'visibility_timeout': 300})\n",
            "shop__base": "from celery import Task\nclass Slow(Task):\n    acks_late = True\n"
            "    reject_on_worker_lost = True\n    time_limit = 1800\n    abstract = True\n",
            "shop__tasks": "from shop.celery import app\nfrom shop.base import Slow as Base\n"
            "@app.task(base=Base)\ndef render(pk): print(pk)\n",
        },
        ["EO207", "EO212"],
    ),
    "EO301 the time to live is a constant of another module": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.clients import LOCK_SECONDS as TTL, store\n"
            "@shared_task(time_limit=600)\ndef sync():\n    with store.lock('sync', timeout=TTL):\n        print(1)\n",
        },
        ["EO301"],
    ),
    "EO302 the lock is a name of another module": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.clients import store as kv\nNAME = 'sync-lock'\n"
            "@shared_task(time_limit=30)\ndef sync():\n    if not kv.set(NAME, 1, nx=True, ex=60):\n        return\n"
            "    print(1)\n    kv.delete(NAME)\n",
            "shop__clients": CLIENTS.replace("store", "redis_store") + "store = redis_store\n",
        },
        ["EO302"],
    ),
    "EO305 a lock without an end in a service": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.jobs import Importer\n"
            "@shared_task\ndef load():\n    Importer().run()\n",
            "shop__jobs": "from shop.clients import store\nclass Importer:\n    def run(self):\n"
            "        with store.lock('import'):\n            print(1)\n",
        },
        ["EO305"],
    ),
    "EO401 the look and the insert in a service of another module": (
        {
            "shop__tasks": "from celery import shared_task\nimport shop.services as services\n"
            "@shared_task\ndef note(key):\n    services.note(key)\n",
            "shop__services": "from shop import models as m\ndef note(key):\n"
            "    if not m.Processed.objects.filter(key=key).exists():\n        m.Processed.objects.create(key=key)\n",
        },
        ["EO401"],
    ),
    "EO402 an inherited model without a unique column": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.models import Processed as Row\n"
            "@shared_task\ndef note(key):\n    Row.objects.get_or_create(key=key)\n",
        },
        ["EO402"],
    ),
    "EO403 the marker here, the work there": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.models import Processed\nimport stripe\n"
            "@shared_task\ndef pay(key, cents):\n    Processed.objects.create(key=key)\n"
            "    stripe.Charge.create(amount=cents, idempotency_key=key)\n",
        },
        ["EO403"],
    ),
    "EO501 a helper of another module that sends": (
        {
            "shop__tasks": "from celery import shared_task\n@shared_task\ndef index(pk): print(pk)\n",
            "shop__signals": "from shop.tasks import index\ndef changed(pk):\n    index.delay(pk)\n",
            "shop__views": "from django.db import transaction as t\nfrom shop.models import Payment\n"
            "from shop import signals\ndef buy(pk):\n    with t.atomic():\n"
            "        Payment.objects.create(order_id=pk, cents=1)\n        signals.changed(pk)\n",
        },
        ["EO501"],
    ),
    "EO501 a task that is re-exported by its package": (
        {
            "shop____init__": "",
            "shop__jobs____init__": "from shop.jobs.index import index\n",
            "shop__jobs__index": "from celery import shared_task\n@shared_task\ndef index(pk): print(pk)\n",
            "shop__views": "from django.db import transaction\nfrom shop.models import Payment\n"
            "from shop.jobs import index\n@transaction.atomic\ndef buy(pk):\n"
            "    Payment.objects.create(order_id=pk, cents=1)\n    index.delay(pk)\n",
        },
        ["EO501"],
    ),
    "EO508 children without keys, sent from a helper": (
        {
            "shop__tasks": "from celery import shared_task\nfrom shop.mails import mail_one\n"
            "@shared_task(bind=True, autoretry_for=(OSError,))\ndef campaign(self, ids):\n"
            "    for one in ids:\n        mail_one.delay(one)\n",
            "shop__mails": "from celery import shared_task\nfrom django.core.mail import send_mail\n"
            "@shared_task\ndef mail_one(pk):\n    send_mail('a', 'b', None, [pk])\n",
        },
        ["EO508"],
    ),
    "EO601 the schedule in the settings, the task elsewhere": (
        {
            "shop__celery": APP + "app.config_from_object('django.conf:settings', namespace='CELERY')\n",
            "shop__settings": "from datetime import timedelta\nCELERY_BEAT_SCHEDULE = {\n"
            "    'interest': {'task': 'shop.tasks.interest', 'schedule': timedelta(hours=1)},\n}\n",
            "shop__tasks": "from celery import shared_task\nfrom shop.models import Payment\n"
            "@shared_task\ndef interest():\n    for one in range(9):\n"
            "        Payment.objects.create(order_id=one, cents=1)\n",
        },
        ["EO101", "EO601"],
    ),
}
"""Each project, and the codes that are found in it."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_mistake_is_found_wherever_its_parts_stand(shape: str, tmp_path: Path) -> None:
    files, expected = SHAPES[shape]
    lay(
        tmp_path,
        **{"shop____init__": "", "shop__celery": APP, "shop__clients": CLIENTS, "shop__models": MODELS, **files},
    )
    codes = sorted({code for code, _ in found(tmp_path)})
    assert codes == expected


QUIET: dict[str, dict[str, str]] = {
    "a key that is made of the arguments elsewhere": {
        "shop__tasks": "from celery import shared_task\nfrom shop.clients import store\nfrom shop import keys\n"
        "@shared_task\ndef sync(a):\n    key = keys.of(a)\n"
        "    if not store.set(key, '1', nx=True, ex=7200):\n        return\n    print(a)\n",
        "shop__keys": "import uuid\nTRACE = uuid.uuid4()\ndef of(a):\n    return f'sync:{a}'\n",
    },
    "a lock above the limit of a base class": {
        "shop__base": "from celery import Task\nclass Quick(Task):\n    time_limit = 30\n",
        "shop__tasks": "from celery import shared_task\nfrom shop.base import Quick\n"
        "from shop.clients import LOCK_SECONDS, store\n"
        "@shared_task(base=Quick)\ndef sync():\n    with store.lock('sync', timeout=LOCK_SECONDS):\n        print(1)\n",
    },
    "a helper of another module that waits for the commit": {
        "shop__tasks": "from celery import shared_task\n@shared_task\ndef index(pk): print(pk)\n",
        "shop__signals": "from functools import partial\nfrom django.db import transaction\n"
        "from shop.tasks import index\ndef changed(pk):\n    transaction.on_commit(partial(index.delay, pk))\n",
        "shop__views": "from django.db import transaction\nfrom shop.models import Payment\n"
        "from shop import signals\ndef buy(pk):\n    with transaction.atomic():\n"
        "        Payment.objects.create(order_id=pk, cents=1)\n        signals.changed(pk)\n",
    },
    "a lookup by a column that a base class keeps unique": {
        "shop__models": "from django.db import models\nclass Keyed(models.Model):\n"
        "    key = models.CharField(max_length=9, unique=True)\n    class Meta:\n        abstract = True\n"
        "class Note(Keyed):\n    pass\n",
        "shop__tasks": "from celery import shared_task\nfrom shop.models import Note\n"
        "@shared_task\ndef note(key):\n    Note.objects.get_or_create(key=key)\n",
    },
    "a shared cache as the place of a lock": {
        "shop__settings": "CACHES = {'default': {'BACKEND': 'django_redis.cache.RedisCache'}}\n",
        "shop__tasks": "from celery import shared_task\nfrom django.core.cache import cache\n"
        "@shared_task(time_limit=60)\ndef sync():\n    if cache.add('sync-lock', '1', 120):\n        print(1)\n",
    },
    "a file that is made once": {
        "shop__tasks": "import os\nfrom celery import shared_task\n@shared_task\ndef export(day):\n"
        "    path = f'/exports/{day}.csv'\n    if os.path.exists(path):\n        return\n"
        "    with open(path, 'w') as file:\n        file.write(day)\n",
    },
    "what a process remembers and only reads": {
        "shop__prices": "from functools import lru_cache\nimport requests\n@lru_cache\ndef price(pk):\n"
        "    return requests.get('https://x', params={'pk': pk}, timeout=9).json()\n",
        "shop__tasks": "from celery import shared_task\nfrom shop.prices import price\n"
        "@shared_task\ndef show(pk):\n    print(price(pk))\n",
    },
    "a class of the project that sends in its own way": {
        "shop__base": "from celery_singleton import Singleton\nclass Single(Singleton):\n    lock_expiry = 600\n"
        "    def on_retry(self, *args):\n        self.release_lock(*args)\n",
        "shop__tasks": "from celery import shared_task\nfrom shop.base import Single\n"
        "@shared_task(bind=True, base=Single, autoretry_for=(OSError,), max_retries=3)\n"
        "def pull(self, n):\n    print(n)\n",
    },
}


@pytest.mark.parametrize("shape", QUIET)
def test_the_same_done_right_is_quiet(shape: str, tmp_path: Path) -> None:
    lay(
        tmp_path,
        **{"shop____init__": "", "shop__celery": APP, "shop__clients": CLIENTS, "shop__models": MODELS, **QUIET[shape]},
    )
    assert found(tmp_path) == []
