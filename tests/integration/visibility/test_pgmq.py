"""The keeper of visibility on PGMQ, whose functions are installed in a PostgreSQL of this test."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from kombu.connection import Connection
from kombu.entity import Queue
from pgmq.install import install_pgmq_from_sql

from effectonce.app.brokers import deliveries_of
from effectonce.ports.outbox import BrokerAway
from tests.integration.visibility.conftest import Hire
from tests.integration.visibility.crew import TIMEOUT

LONG = 3 * TIMEOUT
QUEUE = "celery"
OPTIONS = {"init_extension": False, "wait_time_seconds": 0, "polling_interval": 0.2}


@pytest.fixture
def broker(postgresql_url: str) -> str:
    """A database with PGMQ in it, as kombu addresses it."""
    install_pgmq_from_sql(dsn=psycopg_url(postgresql_url))
    url = sa.make_url(postgresql_url)
    return f"pgmq://{url.username}:{url.password}@{url.host or url.query.get('host')}:{url.port}/{url.database}"


def psycopg_url(url: str) -> str:
    return url.replace("postgresql+psycopg://", "postgresql://")


@pytest.fixture
def connect(broker: str) -> Iterator[Callable[[], Any]]:
    """A channel of a connection of its own."""
    opened: list[Connection] = []

    def channel() -> Any:
        opened.append(Connection(broker, transport_options={**OPTIONS, "visibility_timeout": TIMEOUT}))
        return opened[-1].channel()

    yield channel
    for each in opened:
        each.transport._get_pgmq_client().close()
        each.close()


def take(channel: Any, number: int) -> list[Any]:
    queue = Queue(QUEUE)(channel)
    queue.declare()
    with channel.connection.client.Producer() as producer:
        for _ in range(number):
            producer.publish({}, routing_key=QUEUE)
    return [queue.get() for _ in range(number)]


def hidden_until(url: str) -> list[Any]:
    with psycopg.connect(psycopg_url(url)) as connection:
        return [row[0] for row in connection.execute("select vt from pgmq.q_celery order by msg_id")]


def test_all_messages_of_a_queue_are_renewed_together(connect: Callable[[], Any], postgresql_url: str) -> None:
    channel = connect()
    take(channel, 5)
    deliveries = deliveries_of(channel)
    before = hidden_until(postgresql_url)
    assert deliveries.renew(list(deliveries.held())) == frozenset()
    assert all(now > earlier for now, earlier in zip(hidden_until(postgresql_url), before, strict=True))


def test_what_was_read_again_or_deleted_is_missing(connect: Callable[[], Any], postgresql_url: str) -> None:
    channel = connect()
    done, given, kept = take(channel, 3)
    deliveries = deliveries_of(channel)
    tags = list(deliveries.held())
    with psycopg.connect(psycopg_url(postgresql_url)) as connection:
        connection.execute("delete from pgmq.q_celery where msg_id = 1")
        connection.execute("update pgmq.q_celery set vt = now() where msg_id = 2")
    again = Queue(QUEUE)(connect()).get()
    assert again.delivery_info["pgmq_msg_id"] == given.delivery_info["pgmq_msg_id"]
    assert deliveries.renew(tags) == {done.delivery_tag, given.delivery_tag}
    assert kept.delivery_tag in deliveries.held()


def test_a_database_that_is_away_makes_nothing_missing(connect: Callable[[], Any]) -> None:
    channel = connect()
    take(channel, 1)
    deliveries = deliveries_of(channel)
    channel.pgmq.pool.close()
    with pytest.raises(BrokerAway):
        deliveries.renew(list(deliveries.held()))


def test_on_pgmq_a_living_worker_keeps_its_messages(hire: Hire, broker: str) -> None:
    crew = hire("pgmq", broker=lambda _: broker, options=OPTIONS)
    crew.start()
    crew.wait_ready()
    crew.send("work", "long", LONG)
    crew.send("work", "later", 0, countdown=LONG)
    crew.wait_noted("long:ended")
    crew.wait_noted("later:ended")
    assert {what: crew.bodies(what) for what in ("long", "later")} == {"long": 1, "later": 1}
