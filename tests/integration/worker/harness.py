"""A shop: one app on one broker and one ledger, its workers, its gates, and what its bodies did.

A shop outlives a test: starting workers is most of what these tests cost. `reset` makes it as new for the next one.
Waiting is for a file, a log line or a count, with a deadline.
"""

import importlib
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
import sqlalchemy as sa
from celery import _state
from celery.exceptions import CeleryWarning
from celery.result import AsyncResult

from effectonce.lab.process_tree import wait_until
from effectonce.lab.processes import Worker
from effectonce.lab.reaper import Reaper
from tests.services import Fleet
from tests.services.many_redis import Pair, TwoNodes

APP = "tests.integration.worker.shop"
DEADLINE = 60.0
MANY = {"sentinel": Pair, "cluster": TwoNodes}
"""Ledgers of more than one server, which a shop starts for itself."""


class Shop:
    """What a test does with the app of `shop.py`, and what it can see of it."""

    def __init__(
        self, fleet: Fleet, pair: str, *, pool: str = "prefork", settings: Mapping[str, str] = {}, app: str = APP
    ) -> None:
        self.pair, self.pool, self._name = pair, pool, app
        self._fleet = fleet
        self._tmp = tempfile.TemporaryDirectory(prefix="shop-")
        self.folder = Path(self._tmp.name)
        self._urls: list[tuple[Any, str]] = []
        self._closing = ExitStack()
        self.env = {**self._addresses(), "SHOP_FOLDER": str(self.folder), **settings}
        self._module = self._import()
        self.app, self.once = self._module.app, self._module.once
        self.once.ledger.create_schema()
        self._engine = sa.create_engine(self.env["SHOP_EFFECTS"], poolclass=sa.NullPool)
        self._module.metadata.create_all(self._engine)
        self._workers: list[Worker] = []
        self._log_from: dict[str, int] = {}

    def _addresses(self) -> dict[str, str]:
        broker, ledger = self.pair.split("+")
        results = self._fresh(self._fleet.redis())
        addresses = {
            "SHOP_RESULTS": results,
            "SHOP_BROKER": results if broker == "redis" else self._fresh(self._fleet.rabbitmq()),
            "SHOP_LEDGER": results if ledger == "redis" else "",
        }
        if ledger in {"postgresql", "pgbouncer", "mariadb"}:
            addresses["SHOP_LEDGER"] = self._fresh(getattr(self._fleet, ledger)())
        if ledger in MANY:
            addresses["SHOP_LEDGER"] = self._many(MANY[ledger])
        sqlite = f"sqlite:///{self.folder / 'effects.sqlite'}"
        addresses["SHOP_LEDGER"] = addresses["SHOP_LEDGER"] or sqlite
        apart = ledger == "redis" or ledger in MANY
        return {**addresses, "SHOP_EFFECTS": sqlite if apart else addresses["SHOP_LEDGER"]}

    def _many(self, kind: Any) -> str:
        """Servers of this shop's own."""
        reaper = Reaper()
        self._closing.callback(reaper.close)
        folder = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="shop-redis-"))
        servers = kind(Path(folder), reaper)
        self._closing.callback(servers.close)
        return str(servers.url)

    def _fresh(self, server: Any) -> str:
        url = str(server.fresh_url())
        self._urls.append((server, url))
        return url

    def _import(self) -> Any:
        """A module of this shop's own; its shared task stays out of the apps of other shops."""
        os.environ.update(self.env)
        sys.modules.pop(APP, None)
        sys.modules.pop(self._name, None)
        shared = set(_state._on_app_finalizers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CeleryWarning)  # that a task was defined twice, since 5.7
            module = importlib.import_module(self._name)
            module.app.finalize()
        _state._on_app_finalizers.intersection_update(shared)
        return module

    def reset(self) -> None:
        """Forget effects, entries, gates and bodies; keep the workers that live."""
        self.app.set_current()
        self._workers = [worker for worker in self._workers if worker.is_running]
        with self._engine.begin() as connection:
            connection.execute(self._module.charges.delete())
            if sa.inspect(connection).has_table("effectonce_entries"):
                kept = ("entries", "steps", "held", "outbox", "reservations")
                for table in (f"effectonce_{name}" for name in kept):
                    connection.exec_driver_sql(f"delete from {table}")
        if self.pair.endswith("+redis"):
            client = redis.Redis.from_url(self.env["SHOP_LEDGER"])
            for key in client.scan_iter("effectonce:*"):
                client.delete(key)
            client.close()
        for file in self.folder.iterdir():
            if file.suffix not in {".log", ".sqlite"} and not file.name.startswith("effects.sqlite"):
                file.unlink()
        self._log_from = {worker.name: len(worker.log_text()) for worker in self._workers}

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self.once.ledger.close()
        self._engine.dispose()
        self.app.close()
        for server, url in self._urls:
            server.put_back(url)
        self._closing.close()
        self._tmp.cleanup()

    def end_workers(self) -> None:
        """Kill the workers; the next ones read a queue of their own, and so get nothing that these left behind."""
        for worker in self._workers:
            worker.kill()
        self.app.conf.task_default_queue = self.env["SHOP_QUEUE"] = f"celery-{time.monotonic_ns()}"
        vars(self.app).pop("amqp", None)

    def start(self) -> Worker:
        """A running worker: the one that lives, or a new one."""
        living = [worker for worker in self._workers if worker.is_running]
        return living[0] if living else self.add()

    def add(self, *, wait: bool = True, env: Mapping[str, str] = {}, **options: Any) -> Worker:
        """One more worker."""
        name = f"w{time.monotonic_ns()}"
        options = {"pool": self.pool, "folder": self.folder, "name": name, "env": {**self.env, **env}, **options}
        worker = Worker(self._name, **options)
        worker.start()
        self._workers.append(worker)
        return worker.wait_ready() if wait else worker

    def add_alone(self, **options: Any) -> Worker:
        """One more worker, after the others have ended."""
        for worker in self._workers:
            worker.stop()
        return self.add(**options)

    def task(self, name: str) -> Any:
        return getattr(self._module, name)

    def send(self, name: str, *args: Any, **options: Any) -> AsyncResult:
        return self.task(name).apply_async(args, **options)

    def shut(self, name: str) -> None:
        (self.folder / f"shut-{name}").touch()

    def open(self, name: str) -> None:
        (self.folder / f"open-{name}").touch()

    def wait_at(self, name: str) -> None:
        self.wait((self.folder / f"at-{name}").exists, f"a body is at gate {name}")

    def wait_log(self, words: str) -> None:
        self.wait(lambda: words in self.logs(), f"the log says {words!r}")

    def logs(self) -> str:
        """What the workers have written since the last reset."""
        return "".join(worker.log_text()[self._log_from.get(worker.name, 0) :] for worker in self._workers)

    def all_logs(self) -> str:
        """What all workers have ever written, also in lives that have ended."""
        return "".join(log.read_text(errors="replace") for log in self.folder.glob("*.log"))

    def wait_bodies(self, what: str, number: int) -> None:
        self.wait(lambda: self.bodies(what) >= number, f"{number} bodies of {what}")

    def bodies(self, what: str) -> int:
        return len([line for line in self._lines("bodies") if line.split()[0] == what])

    def body_pid(self, what: str) -> int:
        return next(int(line.split()[1]) for line in reversed(self._lines("bodies")) if line.split()[0] == what)

    def outside(self, what: str) -> list[str]:
        return [line for line in self._lines("outside") if line.split()[0] == what]

    def effects(self) -> Counter[int]:
        """How many rows each order has."""
        with self._engine.connect() as connection:
            return Counter(connection.execute(sa.select(self._module.charges.c.order_id)).scalars())

    def assert_once(self, task: str, order: int) -> None:
        """One effect; outside, one idempotency key whatever the number of attempts."""
        if task == "charge":
            assert self.effects() == {order: 1}
        else:
            assert len(set(self.outside(f"{task}:{order}"))) == 1

    def wait(self, ready: Callable[[], bool], what: str, *, seconds: float = DEADLINE) -> None:
        """Wait until *ready*; fail with the workers' last words."""
        if not wait_until(ready, seconds=seconds):
            pytest.fail(f"waited in vain until {what}\n{self.logs()[-4000:]}")

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []
