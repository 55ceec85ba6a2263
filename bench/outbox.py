"""What the outbox costs and how fast it is emptied, on PostgreSQL with Redis and with RabbitMQ.

*drain*: a full outbox is relayed, in the same run and process in which a plain ``apply_async`` loop sends as many
messages, A B B A; on RabbitMQ both with confirmations. *commit to broker*: from just before the commit of a transaction
that sends one message until the broker has confirmed it; measured in the process that commits. *body*: what a message
adds to a `Transactional` body that is called directly.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from celery import Celery
from sqlalchemy.orm import Session

from effectonce import EffectOnce, Transactional
from effectonce.stores.sql.ledger import SqlLedger
from tests.services import Fleet

PACKAGES = ("effectonce", "celery", "kombu", "amqp", "redis", "sqlalchemy", "psycopg")


def main(words: list[str]) -> None:
    """Measure both brokers and print one line each; writes bench/results/outbox.json."""
    parser = argparse.ArgumentParser("bench outbox", description=__doc__)
    parser.add_argument("--messages", type=int, default=5000, help="messages in a full outbox, and in a loop")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of A B B A")
    parser.add_argument("--commits", type=int, default=300, help="transactions that send one message")
    options = parser.parse_args(words)
    fleet, rows = Fleet(), []
    try:
        for broker in ("redis", "rabbitmq"):
            with _office(fleet, broker) as (app, once, task):
                rows.append(_measured(app, once, task, broker, options))
    finally:
        fleet.close()
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    versions = {name: version(name) for name in PACKAGES}
    Path("bench/results/outbox.json").write_text(
        json.dumps({"machine": machine, "versions": versions, "rows": rows}, indent=2) + "\n"
    )


@contextmanager
def _office(fleet: Fleet, broker: str) -> Iterator[tuple[Celery, EffectOnce, Any]]:
    server, database = getattr(fleet, broker)(), fleet.postgresql()
    url, ledger = server.fresh_url(), database.fresh_url()
    app = Celery("bench", broker=url, set_as_current=False)
    app.conf.task_ignore_result = True
    if broker == "rabbitmq":
        app.conf.broker_transport_options = {"confirm_publish": True}
    once = EffectOnce(app, ledger=ledger)
    once.ledger.create_schema()

    @app.task(name="receipt")
    def receipt(number: int) -> None: ...

    yield app, once, receipt
    once.ledger.close()
    app.close()
    server.put_back(url)
    database.put_back(ledger)


def _measured(app: Celery, once: EffectOnce, task: Any, broker: str, options: argparse.Namespace) -> dict[str, Any]:
    loops, drains, stores = [], [], []
    for _ in range(options.rounds):
        for measure, into in (("loop", loops), ("drain", drains), ("drain", drains), ("loop", loops)):
            if measure == "loop":
                into.append(_rate(lambda: _send(task, options.messages), options.messages))
            else:
                stores.append(_rate(lambda: _fill(once, task, options.messages), options.messages))
                into.append(_rate(lambda: _drain(once), options.messages))
    commits = _commits(once, task, options.commits)
    row = {
        "broker": broker,
        "loop_per_s": round(statistics.median(loops)),
        "drain_per_s": round(statistics.median(drains)),
        "ratio": round(statistics.median(drains) / statistics.median(loops), 2),
        "store_per_s": round(statistics.median(stores)),
        "commit_to_broker_p50_ms": round(statistics.median(commits) * 1000, 2),
        "commit_to_broker_p99_ms": round(statistics.quantiles(commits, n=100)[98] * 1000, 2),
        **_bodies(app, once, task, options.commits),
    }
    print("  ".join(f"{name} {value}" for name, value in row.items()))
    return row


def _rate(what: Callable[[], None], number: int) -> float:
    began = time.perf_counter()
    what()
    return number / (time.perf_counter() - began)


def _send(task: Any, number: int) -> None:
    for nth in range(number):
        task.apply_async((nth,))


def _fill(once: EffectOnce, task: Any, number: int) -> None:
    """Store messages that nobody sends yet."""
    vars(once.dispatcher)["dispatch"] = lambda _stored: None
    for start in range(0, number, 500):
        with once.outbox():
            _send(task, min(500, number - start))
    vars(once.dispatcher).pop("dispatch")


def _drain(once: EffectOnce) -> None:
    with _engine(once).begin() as connection:
        connection.exec_driver_sql("update effectonce_outbox set due = 0")
    relay = once.relay()
    while relay.relay():
        pass


def _commits(once: EffectOnce, task: Any, number: int) -> list[float]:
    seconds: list[float] = []
    broker = once.broker
    plain, began = broker.send, 0.0

    def send(messages: Any) -> Any:
        answers = plain(messages)
        seconds.append(time.perf_counter() - began)
        return answers

    vars(broker)["send"] = send
    vars(once.dispatcher)["_broker"] = broker
    with Session(_engine(once)) as session:
        for nth in range(number):
            with once.outbox(session):
                task.apply_async((nth,))
            began = time.perf_counter()
            session.commit()
    vars(broker).pop("send")
    return seconds


def _bodies(app: Celery, once: EffectOnce, task: Any, number: int) -> dict[str, float]:
    @app.task(name="body", once=Transactional("body:{number}"))
    def body(number: int, sends: int) -> None:
        for nth in range(sends):
            task.apply_async((nth,))

    def median(sends: int, first: int) -> float:
        seconds = []
        for nth in range(first, first + number):
            began = time.perf_counter()
            body(nth, sends)
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds) * 1000

    median(1, 0)
    quiet, one, ten = (median(sends, (1 + at) * number) for at, sends in enumerate((0, 1, 10)))
    return {
        "body_ms": round(quiet, 2),
        "body_with_1_message_ms": round(one, 2),
        "body_with_10_messages_ms": round(ten, 2),
    }


def _engine(once: EffectOnce) -> Any:
    assert isinstance(once.ledger, SqlLedger)  # noqa: S101 - it is opened above
    return once.ledger.source.engine
