"""An app on a real broker whose ledger is a SQL database, in this process: what its bodies send can be counted."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery
from kombu.connection import Connection

from effectonce import EffectOnce
from effectonce.domain.outbox import Stage, Stored
from effectonce.stores.sql.ledger import SqlLedger

_numbers = itertools.count()
metadata = sa.MetaData()
orders = sa.Table("orders", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("number", sa.Integer))


class Office:
    """One app, its ledger, and what its broker has."""

    def __init__(self, broker: str, ledger: Any, **settings: Any) -> None:
        self.app = Celery(f"office{next(_numbers)}", broker=broker, backend="cache+memory://", set_as_current=False)
        self.app.conf.task_publish_retry = False
        self.once = EffectOnce(self.app, ledger=ledger, **settings)
        self.once.ledger.create_schema()
        self.engine = _engine_of(self.once)
        metadata.create_all(self.engine)

    def close(self) -> None:
        self.once.ledger.close()
        self.engine.dispose()
        self.app.close()

    @property
    def numbers(self) -> list[int]:
        """The orders that are committed."""
        with self.engine.connect() as connection:
            return list(connection.execute(sa.select(orders.c.number).order_by(orders.c.id)).scalars())

    def waiting(self, stage: Stage | None = None) -> list[Stored]:
        """What is in the outbox."""
        return list(self.once.outbox_store().waiting(stage=stage, limit=10_000))

    def dispatch_nothing(self) -> None:
        """From here on this process leaves what it stores, as one does that is killed before it can send."""
        vars(self.once.dispatcher)["dispatch"] = lambda _stored: None

    def relay_all(self) -> int:
        """Send what is in the outbox, due or not, as a relay does; answers how many."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql("update effectonce_outbox set due = 0")
        relay, sent = self.once.relay(), 0
        while taken := relay.relay():
            sent += taken
        return sent

    def arrived(self, queue: str = "celery") -> list[Any]:
        """Take what the broker has, in the order in which it came."""
        found = []
        with Connection(self.app.conf.broker_url) as connection:
            simple = connection.SimpleQueue(queue)
            while (message := self._next(simple)) is not None:
                message.ack()
                found.append(message)
            simple.close()
        return found

    @staticmethod
    def _next(simple: Any) -> Any:
        try:
            return simple.get(block=False)
        except simple.Empty:
            return None

    def arguments(self, queue: str = "celery") -> list[Any]:
        """The positional arguments of what has arrived."""
        return [message.payload[0] for message in self.arrived(queue)]


def _engine_of(once: EffectOnce) -> sa.Engine:
    assert isinstance(once.ledger, SqlLedger)
    return once.ledger.source.engine


@pytest.fixture
def offices() -> Iterator[Callable[..., Office]]:
    """Open an office; its tasks are forgotten after the test."""
    opened = list[Office]()

    def office(broker: str, ledger: Any, **settings: Any) -> Office:
        opened.append(Office(broker, ledger, **settings))
        return opened[-1]

    yield office
    for each in opened:
        each.close()


@pytest.fixture(params=["postgresql", "sqlite"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """A SQL database of this test."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def office(offices: Callable[..., Office], ledger_url: str, redis_url: str) -> Office:
    """An app on Redis."""
    return offices(redis_url, ledger_url)
