"""What one trial runs on: a folder, servers, workers, beats. All of it ends with the trial."""

import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from effectonce.lab.contenders import CONTENDERS
from effectonce.lab.processes import Process, Worker
from effectonce.lab.proxy import Proxy
from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.postgresql import PostgreSQL
from effectonce.lab.servers.redis import Redis
from effectonce.lab.trials.app import APP
from effectonce.lab.trials.parts import OWN_LEDGER, Parts
from effectonce.lab.trials.place import Place

if TYPE_CHECKING:
    from effectonce.lab.scenarios.scenario import Scenario


class Scene:
    """The parts of one trial. *place* is what processes get that are started from now on."""

    def __init__(self, scenario: "Scenario", contender: str, parts: Parts, folder: Path, undo: ExitStack) -> None:
        self.folder = folder
        self.undo = undo
        self.workers: list[Worker] = []
        self.beats: list[Process] = []
        self.reaper = Reaper()
        undo.callback(self.reaper.close)
        self.redis = Redis(folder / "redis", reaper=self.reaper)
        self.redis.start()
        undo.callback(self.redis.kill)
        self.postgresql = PostgreSQL(folder / "sql", reaper=self.reaper) if OWN_LEDGER in scenario.needs else None
        name = f"lab_{secrets.token_hex(5)}"
        ledger = self._ledger(parts)
        self.broker_url = (parts.rabbitmq if scenario.rabbitmq else parts.broker) or self.redis.url
        self.place = Place(
            name=name,
            contender=contender,
            broker=self.broker_url,
            results=self.redis.url if scenario.rabbitmq else self.broker_url,
            locks=self.redis.url,
            ledger=ledger,
            schema=None if ledger.startswith("sqlite") else name,
            diary=str(folder / "diary"),
        )

    def worker(self, *, pool: int, options: tuple[str, ...], **place: Any) -> Worker:
        """Start a worker; it may not be ready yet."""
        worker = Worker(
            APP,
            folder=self.folder,
            name=f"w{len(self.workers) + 1}",
            concurrency=pool,
            options=options,
            env={**self.place.environment(**place), "TMPDIR": str(self.folder)},
            cwd=self.folder,
            reaper=self.reaper,
        )
        self.workers.append(worker)
        self.undo.callback(worker.kill)
        return worker.start()

    def beat(self, **place: Any) -> Process:
        """Start a beat with a schedule file of its own."""
        name = f"beat{len(self.beats) + 1}"
        scheduler = CONTENDERS[self.place.contender].scheduler
        command = [sys.executable, "-m", "celery", "-A", APP, "beat", "-l", "INFO", "-S", scheduler]
        command += ["-s", str(self.folder / name), "--pidfile", ""]
        beat = Process(
            command,
            log=self.folder / f"{name}.log",
            env=self.place.environment(**place),
            cwd=self.folder,
            reaper=self.reaper,
        )
        self.beats.append(beat)
        self.undo.callback(beat.kill)
        return beat.start()

    def keep_snapshot(self) -> None:
        """Keep what Redis has on disk now; it answers only what it has written."""
        shutil.copytree(self.redis.folder / "appendonlydir", self.folder / "snapshot")

    def restart_from_snapshot(self) -> None:
        """Kill Redis, and let it come back with what was kept."""
        self.redis.kill()
        shutil.rmtree(self.redis.folder / "appendonlydir")
        shutil.copytree(self.folder / "snapshot", self.redis.folder / "appendonlydir")
        self.redis.start()

    def restart_database(self) -> None:
        """Kill this trial's PostgreSQL, and start it again."""
        if self.postgresql is not None:
            self.postgresql.kill()
            self.postgresql.start()

    def before_broker(self) -> Proxy:
        """Put a bad network before the broker; processes started from now on, and the caller, go through it."""
        proxy = self.undo.enter_context(Proxy(self.broker_url))
        self.place = replace(self.place, broker=proxy.url)
        return proxy

    def before_ledger(self) -> Proxy:
        """Put a bad network before the database."""
        proxy = self.undo.enter_context(Proxy(self.place.ledger))
        self.place = replace(self.place, ledger=proxy.url)
        return proxy

    def _ledger(self, parts: Parts) -> str:
        if self.postgresql is None:
            return parts.ledger or f"sqlite:///{self.folder / 'ledger.db'}"
        self.postgresql.start()
        self.undo.callback(self.postgresql.kill)
        return self.postgresql.fresh_url()


@contextmanager
def scene(scenario: "Scenario", contender: str, parts: Parts, folder: Path) -> Iterator[Scene]:
    """Put it up and take it down."""
    with ExitStack() as undo:
        yield Scene(scenario, contender, parts, folder, undo)
