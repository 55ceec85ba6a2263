"""A worker of one process, in this process: what a delivery says of itself can be chosen."""

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery
from celery.app.trace import build_tracer

from effectonce import EffectOnce, Exclusive, Leased, Transactional
from effectonce.domain.claims import Granted
from effectonce.ports.history import Happened

_numbers = itertools.count()


class House:
    """An app, its ledger, and deliveries of its messages. Copies that are put off are noted, and go nowhere."""

    def __init__(self, ledger: str, *, transport: str = "redis", **settings: Any) -> None:
        name = f"house{next(_numbers)}"
        self.app = Celery(name, broker="memory://", backend="cache+memory://", set_as_current=False)
        self.app.__dict__["_effectonce_transport"] = transport
        self.once = EffectOnce(self.app, ledger=ledger, **settings)
        self.copies: list[dict[str, Any]] = []

        @self.app.task(name="pay", shared=False, once=Transactional("pay:{order}"))
        def pay(order: str, amount: int = 1) -> str:
            return f"paid {order}"

        @self.app.task(name="mail", shared=False, once=Leased("mail:{order}"))
        def mail(order: str) -> str:
            return f"mailed {order}"

        @self.app.task(name="sync", shared=False, once=Exclusive("sync:{shelf}"))
        def sync(shelf: str) -> str:
            return f"synced {shelf}"

        plain = self.app.send_task

        def send_task(name: str, *args: Any, **options: Any) -> Any:
            self.copies.append(options)
            return plain(name, *args, **options)

        self.app.send_task = send_task
        self.once.keep_history()

    def deliver(
        self,
        task: str,
        *args: Any,
        id: str = "",  # noqa: A002 - Celery's own
        redelivered: bool = False,
        **headers: Any,
    ) -> Any:
        """Deliver a message as a worker's pool would; answers what its trace returns."""
        task_id = id or str(uuid.uuid4())
        request = {
            "id": task_id,
            "task": task,
            "args": args,
            "kwargs": {},
            "retries": 0,
            "is_eager": False,
            "delivery_info": {"redelivered": redelivered},
            "headers": headers,
            "hostname": "here",
        }
        self.app.finalize()
        return build_tracer(task, self.app.tasks[task], app=self.app)(task_id, args, {}, request)

    def hold(self, task: str, *args: Any, id: str) -> Granted:  # noqa: A002 - Celery's own
        """Be the living holder of a claim, as the delivery of another worker."""
        guard, request = self.once.guard_of(self.app.tasks[task]), self.app.tasks[task].request
        assert guard is not None
        request.update(id=id, called_directly=False, is_eager=False, headers={}, delivery_info={})
        try:
            claim = guard.frame(self.app.tasks[task], request, args, {}, None).claim
        finally:
            request.update(id=None, called_directly=True)
        granted = self.once.ledger.claim(claim)
        assert isinstance(granted, Granted)
        return granted

    def history(self, key: str) -> list[Happened]:
        """What is written about an effect."""
        self.once.write_history()
        return list(self.once.entries.history(self.once.entries.one(key)))

    def causes(self, key: str) -> list[tuple[str, str]]:
        return [(each.name, each.cause) for each in self.history(key)]

    def close(self) -> None:
        self.once.write_history()
        self.once.ledger.close()
        self.app.close()


@pytest.fixture
def house(sqlite_url: str) -> Iterator[House]:
    house = House(sqlite_url)
    yield house
    house.close()
