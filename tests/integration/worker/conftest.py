"""A shop of one test: an app, its workers, its gates, and what its bodies did.

Each test runs over the pairs of broker and ledger in `SHOPS`, and over pools where it asks for them. The result
backend is Redis throughout. Waiting is for a file, a log line or a count, with a deadline.
"""

import importlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from celery import _state
from celery.result import AsyncResult

APP = "tests.integration.worker.shop"
SHOPS = ["redis+postgresql", "redis+sqlite", "amqp+postgresql"]
DEADLINE = 60.0


class Worker:
    """One worker in a session of its own, so that all of it can be killed at once."""

    def __init__(self, folder: Path, env: dict[str, str], *, pool: str, concurrency: int, number: int) -> None:
        self.log = folder / f"worker-{number}.log"
        command = [sys.executable, "-m", "celery", "-A", APP, "worker", "-P", pool, "-c", str(concurrency)]
        command += ["-l", "INFO", "-n", f"w{number}-{os.getpid()}@%h", "--without-gossip", "--without-mingle"]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command, env=env, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        wait(lambda: " ready." in self.log.read_text(errors="replace"), f"worker is ready: {self.log}", self.alive)

    def alive(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """Kill main process and children together."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def kill_child(self, pid: int) -> None:
        assert pid != self.process.pid
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        if self.alive():
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(8)
            except subprocess.TimeoutExpired:
                self.kill()


class Shop:
    """What a test does with the app of `shop.py`, and what it can see of it."""

    def __init__(self, module: ModuleType, folder: Path, env: dict[str, str], *, pool: str) -> None:
        self.app = module.app
        self.once = module.once
        self.pool = pool
        self._module = module
        self._folder = folder
        self._env = env
        self._workers: list[Worker] = []
        self._engine = sa.create_engine(env["SHOP_EFFECTS"], poolclass=sa.NullPool)
        module.metadata.create_all(self._engine)

    def start(self, *, concurrency: int = 2, **env: str) -> Worker:
        worker = Worker(
            self._folder,
            {**self._env, **env},
            pool=self.pool,
            concurrency=concurrency,
            number=len(self._workers) + 1,
        )
        self._workers.append(worker)
        return worker

    def close(self) -> None:
        for worker in self._workers:
            worker.stop()
        self.once.ledger.close()

    def task(self, name: str) -> Any:
        return getattr(self._module, name)

    def send(self, name: str, *args: Any, **options: Any) -> AsyncResult:
        return self.task(name).apply_async(args, **options)

    def shut(self, name: str) -> None:
        (self._folder / f"shut-{name}").touch()

    def open(self, name: str) -> None:
        (self._folder / f"open-{name}").touch()

    def wait_at(self, name: str) -> None:
        wait((self._folder / f"at-{name}").exists, f"a body is at gate {name}")

    def wait_log(self, words: str) -> None:
        wait(lambda: words in self.logs(), f"the log says {words!r}")

    def logs(self) -> str:
        return "".join(worker.log.read_text(errors="replace") for worker in self._workers)

    def wait_bodies(self, what: str, number: int) -> None:
        wait(lambda: self.bodies(what) >= number, f"{number} bodies of {what}")

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

    def _lines(self, name: str) -> list[str]:
        file = self._folder / name
        return file.read_text().splitlines() if file.exists() else []


def wait(ready: Callable[[], bool], what: str, still: Callable[[], bool] = lambda: True) -> None:
    """Wait until *ready*, at most `DEADLINE` seconds, and no longer than *still* holds."""
    end = time.monotonic() + DEADLINE
    while not ready():
        if time.monotonic() > end or not still():
            pytest.fail(f"waited in vain until {what}")
        time.sleep(0.02)


@pytest.fixture(params=SHOPS)
def pair(request: pytest.FixtureRequest) -> str:
    """Broker and ledger of this test."""
    return str(request.param)


@pytest.fixture
def pool() -> str:
    """The worker's pool; a test that wants others parametrizes it."""
    return "prefork"


@pytest.fixture
def shop(
    pair: str, pool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Shop]:
    """The app of this test, fresh, with its addresses in the environment."""
    broker, ledger = pair.split("+")
    addresses = {
        "SHOP_FOLDER": str(tmp_path),
        "SHOP_RESULTS": request.getfixturevalue("redis_url"),
        "SHOP_BROKER": request.getfixturevalue("redis_url" if broker == "redis" else "amqp_url"),
        "SHOP_LEDGER": request.getfixturevalue(f"{ledger}_url"),
    }
    addresses["SHOP_EFFECTS"] = addresses["SHOP_LEDGER"]
    if ledger == "redis":
        addresses["SHOP_EFFECTS"] = request.getfixturevalue("sqlite_url")
    for name, value in addresses.items():
        monkeypatch.setenv(name, value)
    shared = set(_state._on_app_finalizers)
    sys.modules.pop(APP, None)
    module = importlib.import_module(APP)
    module.once.ledger.create_schema()
    shop = Shop(module, tmp_path, {**os.environ}, pool=pool)
    yield shop
    shop.close()
    module.app.close()
    _state._on_app_finalizers.intersection_update(shared)
