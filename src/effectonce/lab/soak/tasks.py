"""The app of a soak: each of its tasks stands for one promise.

`charge` writes a row in the ledger's database, sends a message and may retry: all of it once. `mail` and `note` call
the outside: with one idempotency key, however often. `letter` calls somebody who honours no key: at most once.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from celery import Celery, current_task

from effectonce import EffectOnce, Leased, Transactional
from effectonce.lab.charges import Charges
from effectonce.lab.journal import Fact, Journal, What
from effectonce.lab.soak.outside import Outside

VARIABLE: Final = "EFFECTONCE_SOAK"
LEASE: Final = 2.0
VISIBILITY: Final = 3
"""Seconds after which Redis delivers a message again that nobody has acknowledged or renewed."""
_DEATHS: Final = 1000
"""More than one key can suffer here: what dies often is not to be held for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a worker has to know.

    *charges* is the database of the judge's rows, None where bodies write none. *guards* is off to see that the judge
    notices: then the tasks are as good as plain ones.
    """

    broker: str
    results: str
    ledger: str
    charges: str | None
    folder: str
    renews: bool
    guards: bool = True

    def environment(self) -> dict[str, str]:
        """Return what a worker's environment needs; never printed, for it may hold passwords."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Self:
        """Read what `environment` wrote; raises KeyError in a process that no soak has started."""
        return cls(**json.loads(os.environ[VARIABLE]))

    @property
    def journal(self) -> Journal:
        """What the bodies did."""
        return Journal(Path(self.folder) / "journal")

    @property
    def outside(self) -> Outside:
        """What they did outside."""
        return Outside(Path(self.folder) / "outside")

    def judge(self) -> Charges | None:
        """The rows of the transactional task."""
        return Charges(self.charges, task="charge", schema=None) if self.charges else None


def open_app(site: Site, *, confirms: bool = False) -> tuple[Any, EffectOnce]:
    """Make the app with its tasks; *confirms* is for who sends to RabbitMQ without a guard."""
    app = Celery("soak", broker=site.broker, backend=site.results, set_as_current=False)
    app.conf.update(_configuration(site, confirms=confirms))
    mode = "enforce" if site.guards else "off"
    once = EffectOnce(app, ledger=site.ledger, lease_seconds=LEASE, renew_visibility=site.renews, mode=mode)
    _define(app, once, site)
    return app, once


def _configuration(site: Site, *, confirms: bool) -> dict[str, Any]:
    transport: dict[str, Any] = {"confirm_publish": True} if confirms else {}
    if site.broker.startswith("redis"):
        transport = {
            "visibility_timeout": VISIBILITY,
            "unacked_restore_interval": 1,
            "unacked_restore_throttle": 1,
            # A worker that is killed while it looks for messages to give back leaves this lock behind.
            "unacked_mutex_expire": 5,
        }
    return {
        "broker_transport_options": transport,
        "broker_connection_retry_on_startup": True,
        "broker_connection_timeout": 2,
        "task_publish_retry": False,
        "worker_prefetch_multiplier": 2,
        "worker_enable_remote_control": False,
        "result_expires": 3600,
    }


def _define(app: Any, once: EffectOnce, site: Site) -> None:
    journal, outside, charges = site.journal, site.outside, site.judge()

    def act(task: str, order: int) -> None:
        outside.call(task, order, str(once.effect.idempotency_key(task)))

    @app.task(name="note", shared=False, once=Leased("note:{order}", max_takeovers=_DEATHS))
    def note(order: int) -> str:
        once.effect.step("note", act, "note", order)
        return f"noted {order}"

    @app.task(
        name="charge",
        shared=False,
        bind=True,
        max_retries=None,
        once=Transactional("charge:{order}", max_takeovers=_DEATHS),
    )
    def charge(self: Any, order: int, seconds: float, retries: int) -> str:
        with _noted(journal, order):
            if charges is not None:
                once.session.execute(charges.row(order, 1))
            note.delay(order)
            time.sleep(seconds)
            if self.request.retries < retries:
                raise self.retry(countdown=0.2)
        return f"charged {order}"

    def define_caller(name: str, policy: Leased) -> None:
        @app.task(name=name, shared=False, bind=True, max_retries=None, once=policy)
        def call(self: Any, order: int, seconds: float, retries: int) -> str:
            with _noted(journal, order):
                if self.request.retries < retries:
                    raise self.retry(countdown=0.2)
                time.sleep(seconds / 2)
                once.effect.step(name, act, name, order)
                time.sleep(seconds / 2)
            return f"called {order}"

    define_caller("mail", Leased("mail:{order}", max_takeovers=_DEATHS))
    define_caller("letter", Leased("letter:{order}", max_takeovers=_DEATHS, on_unknown="skip"))


@contextmanager
def _noted(journal: Journal, order: int) -> Iterator[None]:
    _note(journal, "began", order)
    try:
        yield
    finally:
        _note(journal, "ended", order)


def _note(journal: Journal, what: What, order: int) -> None:
    request = current_task.request
    journal.note(Fact(what=what, pid=os.getpid(), task=current_task.name, order=order, message=request.id))
