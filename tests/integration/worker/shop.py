"""The app that the workers of these tests run; its addresses come from the environment.

Bodies note each of their starts in an append-only file, apart from every transaction: that file says how often a body
*ran*. Effects are rows without any unique constraint: they say how often it took *effect*.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from celery import Celery, shared_task

from effectonce import EffectOnce, Leased, Transactional, effect, session

FOLDER = Path(os.environ["SHOP_FOLDER"])
BROKER = os.environ["SHOP_BROKER"]
RESULTS = os.environ["SHOP_RESULTS"]
LEDGER = os.environ["SHOP_LEDGER"]
EFFECTS = os.environ.get("SHOP_EFFECTS", LEDGER)
LEASE = float(os.environ.get("SHOP_LEASE", "2"))

app = Celery("shop", broker=BROKER, backend=RESULTS)
app.conf.update(
    broker_transport_options=(
        {
            "visibility_timeout": 3,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            "unacked_mutex_expire": 3,
        }
        if BROKER.startswith("redis")
        else {}
    ),
    worker_prefetch_multiplier=1,
    task_publish_retry=False,
    result_expires=600,
    broker_connection_retry_on_startup=True,
)
app.conf.task_default_queue = os.environ.get("SHOP_QUEUE", "celery")
app.conf.update(json.loads(os.environ.get("SHOP_CONF", "{}")))
CREATE = False if os.environ.get("SHOP_CREATE") else None
RENEW = bool(os.environ.get("SHOP_RENEW"))
"""Off: these tests want the copies that a broker makes of what nobody renews."""
once = EffectOnce(app, ledger=LEDGER, lease_seconds=LEASE, create_schema=CREATE, renew_visibility=RENEW)

metadata = sa.MetaData()
charges = sa.Table(
    "charges",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("order_id", sa.Integer),
    sa.Column("amount", sa.Integer),
)


def began(what: str) -> None:
    """Note that a body started; one short write with O_APPEND is whole."""
    with (FOLDER / "bodies").open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


def outside(what: str) -> None:
    """Do something outside of every database."""
    with (FOLDER / "outside").open("a") as file:
        file.write(f"{what}\n")


def gate(name: str, timeout: float = 60) -> None:
    """Wait until the test opens this gate; gates that nobody shut are open."""
    shut, opened = FOLDER / f"shut-{name}", FOLDER / f"open-{name}"
    if not shut.exists():
        return
    (FOLDER / f"at-{name}").touch()
    end = time.monotonic() + timeout
    while not opened.exists() and time.monotonic() < end:
        time.sleep(0.01)


@app.task(once=Transactional("charge:{order_id}"))
def charge(order_id: int, amount: int = 100, pause: float = 0) -> str:
    began(f"charge:{order_id}")
    session.execute(charges.insert().values(order_id=order_id, amount=amount))
    time.sleep(pause)
    gate(f"charge-{order_id}")
    return f"charged {order_id}"


@app.task(once=Transactional("quiet:{order_id}"))
def quiet(order_id: int) -> None:
    began(f"quiet:{order_id}")
    session.execute(charges.insert().values(order_id=order_id, amount=1))


@app.task(once=Leased("mail:{order_id}"))
def mail(order_id: int, pause: float = 0) -> str:
    began(f"mail:{order_id}")
    gate(f"mail-{order_id}")
    time.sleep(pause)
    outside(f"mail:{order_id} {effect.idempotency_key('mail')}")
    return f"mailed {order_id}"


@app.task(bind=True, once=Transactional("flaky:{order_id}"), max_retries=5)
def flaky(self: Any, order_id: int, failures: int) -> str:
    began(f"flaky:{order_id}")
    session.execute(charges.insert().values(order_id=order_id, amount=1))
    if self.request.retries < failures:
        raise self.retry(countdown=0.1)
    return f"at try {self.request.retries}"


@app.task(
    bind=True,
    once=Leased("flaky-mail:{order_id}"),
    autoretry_for=(ValueError,),
    retry_backoff=False,
    default_retry_delay=0.1,
    max_retries=5,
)
def flaky_mail(self: Any, order_id: int, failures: int) -> str:
    began(f"flaky-mail:{order_id}")
    if self.request.retries < failures:
        raise ValueError(order_id)
    outside(f"flaky-mail:{order_id}")
    return f"at try {self.request.retries}"


@app.task(once=Transactional("fails:{order_id}", remember=(KeyError,)))
def fails(order_id: int, how: str) -> None:
    began(f"fails:{order_id}")
    session.execute(charges.insert().values(order_id=order_id, amount=1))
    if how == "remembered":
        raise KeyError(order_id)
    if how == "once" and not (FOLDER / f"failed-{order_id}").exists():
        (FOLDER / f"failed-{order_id}").touch()
        raise ValueError(order_id)


@app.task(bind=True, once=Transactional("replaces:{order_id}"))
def replaces(self: Any, order_id: int) -> Any:
    began(f"replaces:{order_id}")
    session.execute(charges.insert().values(order_id=order_id, amount=1))
    return self.replace(add.s(order_id, 1))


@shared_task(once=Leased("shared:{order_id}"))
def shared(order_id: int) -> int:
    began(f"shared:{order_id}")
    return order_id


@app.task(once=Transactional("deadly:{order_id}", max_takeovers=3))
def deadly(order_id: int) -> None:
    began(f"deadly:{order_id}")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(once=Leased("deadly-mail:{order_id}", max_takeovers=3, lease=1))
def deadly_mail(order_id: int, whole: bool = False) -> None:  # noqa: FBT002 - a task's argument
    began(f"deadly-mail:{order_id}")
    if whole:
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(
    bind=True,
    once=Leased("pays:{order_id}"),
    autoretry_for=(TimeoutError,),
    retry_backoff=False,
    default_retry_delay=0.1,
    max_retries=5,
)
def pays(self: Any, order_id: int, failures: int) -> str:
    """The receiver takes the money and then answers too late."""
    outside(f"pays:{order_id} {effect.idempotency_key('pay')}")
    if self.request.retries < failures:
        raise TimeoutError(order_id)
    return f"paid {order_id}"


@app.task(once=Leased("skips:{order_id}", on_busy="skip"))
def skips(order_id: int) -> str:
    began(f"skips:{order_id}")
    gate(f"skips-{order_id}")
    return f"done {order_id}"


@app.task(once=Transactional("sells:{order_id}"))
def sells(order_id: int, ends: str = "well") -> str:
    """Writes, sends a guarded message and one that is not, and may fail after that."""
    began(f"sells:{order_id}")
    session.execute(charges.insert().values(order_id=order_id, amount=1))
    mail.delay(order_id)
    add.delay(order_id, 1)
    if ends == "badly":
        raise ValueError(order_id)
    return f"sold {order_id}"


@app.task
def add(x: int, y: int) -> int:
    began(f"add:{x}")
    return x + y


@app.task
def total(numbers: list[Any]) -> int:
    began("total")
    return len(numbers)


@app.task(once=Leased("early:{order_id}"), acks_late=False, reject_on_worker_lost=False)
def early(order_id: int) -> str:
    """Acknowledged when its body starts, as its author says."""
    began(f"early:{order_id}")
    gate(f"early-{order_id}")
    outside(f"early:{order_id}")
    return f"early {order_id}"
