"""All that one demo runs on: a folder, a broker, databases, an app, workers. It is put up, and taken down in any case.

In servers that are not its own it uses only names of this run, and removes them at the end.
"""

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import redis
from kombu.exceptions import OperationalError

from effectonce.errors import EffectOnceError
from effectonce.lab import charges
from effectonce.lab.addresses import DemoBroken, DemoRefused, is_redis
from effectonce.lab.charges import Charges, DatabaseError
from effectonce.lab.journal import Journal
from effectonce.lab.place import Place
from effectonce.lab.processes import Worker, unbroken
from effectonce.lab.reaper import Reaper
from effectonce.lab.shop import Shop, open_shop
from effectonce.lab.valkey import start_valkey

APP: Final = "effectonce.lab.demo_app"
WORKERS: Final = 2
POOL: Final = 2
_PATIENCE: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What the scenario plays on. *charges* has each task's judge."""

    place: Place
    shop: Shop
    journal: Journal
    charges: dict[str, Charges]
    workers: list[Worker]
    broker_name: str
    ledger_name: str

    def is_quiet(self) -> bool:
        """Tell whether the broker holds no message of ours; RabbitMQ does not tell of those that workers hold."""
        with self.shop.app.connection_for_read() as connection:
            channel = connection.channel()
            if not is_redis(self.place.broker):
                return not channel.queue_declare(self.place.name, passive=True).message_count
            waiting = channel.queue_declare(self.place.name).message_count
            return not waiting and not channel.client.zcard(channel.unacked_index_key)


@contextmanager
def raise_stage(*, broker: str | None, ledger: str | None) -> Iterator[Stage]:
    """Put a stage up, its workers ready; raises DemoRefused for an address that does not answer.

    The addresses are checked ones; None stands for an embedded server and a file of our own.
    """
    with ExitStack() as undo:
        reaper = Reaper()
        undo.callback(reaper.close)
        folder = unbroken(lambda: _folder(reaper, undo))
        place = _place(folder, broker=broker or _own_broker(folder, reaper, undo), ledger=ledger)
        shop = open_shop(place)
        _await_broker(shop, place)
        undo.callback(_clear_broker, shop, place)
        judges = _prepare_databases(shop, place, undo)
        yield Stage(
            place=place,
            shop=shop,
            journal=Journal(Path(place.journal)),
            charges=judges,
            workers=_start_workers(folder, place, reaper, undo),
            broker_name=charges.without_password(place.broker) if broker else "an embedded Valkey",
            ledger_name=charges.without_password(place.ledger) if ledger else "a SQLite file",
        )


def _folder(reaper: Reaper, undo: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="effectonce-demo-"))
    undo.callback(shutil.rmtree, folder, ignore_errors=True)
    reaper.remove(str(folder))
    return folder


def _own_broker(folder: Path, reaper: Reaper, undo: ExitStack) -> str:
    server = start_valkey(folder, reaper=reaper)
    undo.callback(server.kill)
    return server.url


def _place(folder: Path, *, broker: str, ledger: str | None) -> Place:
    name = f"effectonce_demo_{secrets.token_hex(4)}"
    server = ledger is not None and charges.backend(ledger) != "sqlite"
    results = folder / "results"
    results.mkdir()
    return Place(
        name=name,
        broker=broker,
        results=broker if is_redis(broker) else f"file://{results}",
        ledger=ledger or f"sqlite:///{folder / 'ledger.db'}",
        plain=str(ledger) if server else f"sqlite:///{folder / 'plain.db'}",
        schema=name if server else None,
        journal=str(folder / "journal"),
    )


def _await_broker(shop: Shop, place: Place) -> None:
    try:
        with shop.app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.2, timeout=_PATIENCE)
    except (OperationalError, OSError) as error:
        raise DemoRefused(
            option="--broker",
            reason=f"{charges.without_password(place.broker)} does not answer: {charges.reason_of(error)}",
        ) from error


def _prepare_databases(shop: Shop, place: Place, undo: ExitStack) -> dict[str, Charges]:
    try:
        judges = {
            "plain": Charges(place.plain, task="plain", schema=place.schema),
            "guarded": Charges(place.ledger, task="guarded", schema=place.schema),
        }
        for judge in judges.values():
            judge.create()
            if place.schema:
                undo.callback(_drop, judge, place.schema)
        undo.callback(shop.once.ledger.close)
        shop.once.ledger.create_schema()
    except (DatabaseError, EffectOnceError) as error:
        shown = charges.without_password(place.ledger)
        raise DemoRefused(option="--ledger", reason=f"{shown} cannot be used: {charges.reason_of(error)}") from error
    return judges


def _drop(judge: Charges, schema: str) -> None:
    try:
        judge.drop()
    except DatabaseError as error:
        message = f"the schema {schema} could not be dropped and is left behind: {charges.reason_of(error)}"
        raise DemoBroken(message) from error


def _start_workers(folder: Path, place: Place, reaper: Reaper, undo: ExitStack) -> list[Worker]:
    # A killed pool leaves temporary folders of its own behind.
    env = {**place.environment(), "TMPDIR": str(folder)}
    workers = [
        Worker(APP, folder=folder, name=f"w{number}", concurrency=POOL, env=env, cwd=folder, reaper=reaper)
        for number in range(1, WORKERS + 1)
    ]
    for worker in workers:
        undo.callback(worker.kill)
        worker.start()
    for worker in workers:
        worker.wait_ready()
    return workers


def _clear_broker(shop: Shop, place: Place) -> None:
    """Remove what this run has left; a broker that is gone has nothing left to remove."""
    with suppress(OperationalError, OSError, redis.RedisError):
        if is_redis(place.broker):
            _clear_redis(place)
            return
        with shop.app.connection_for_write() as connection:
            channel = connection.channel()
            channel.queue_delete(place.name)
            channel.exchange_delete(place.name)


def _clear_redis(place: Place) -> None:
    with redis.Redis.from_url(place.broker) as client:
        for key in client.scan_iter(f"{place.name}:*", count=500):
            client.delete(key)
