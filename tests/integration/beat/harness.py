"""A place where beats run: a broker that keeps what they send, a ledger, and their logs.

No worker runs, so the queue is the account of what was sent, each message with its id, entry and instant.
"""

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest
import redis

from effectonce.app.ledgers import open_ledger
from effectonce.lab.process_tree import wait_until
from effectonce.lab.processes import Process, Worker
from tests.services import Fleet

PROJECT = "tests.integration.beat.project"
LEASE = 1.5


@dataclass(frozen=True)
class Sent:
    """One message of the queue."""

    entry: str
    instant: datetime
    task_id: str


class Beat(Process):
    """``celery -A project beat -S once``."""

    def __init__(self, folder: Path, name: str, env: Mapping[str, str], *, file: str = "") -> None:
        self.file = folder / (file or f"{name}.schedule")
        command = [sys.executable, "-m", "celery", "-A", PROJECT, "beat", "-S", "once", "-l", "INFO"]
        command += ["-s", str(self.file), "--pidfile", ""]
        super().__init__(command, log=folder / f"{name}.log", env=env)
        self.name = name

    def is_ready(self) -> bool:
        return "beat: Starting" in self.log_text()

    def has_won(self) -> bool:
        """Whether this life of it has led."""
        return "term.won" in self.log_text()

    def leads(self) -> bool:
        """Whether it leads, by its own log."""
        text = self.log_text()
        return self.is_running and text.rfind("term.won") > text.rfind("term.lost")


class Place:
    """One broker, one ledger, and the beats there."""

    def __init__(self, fleet: Fleet, ledger: str, schedule: Mapping[str, Any], **env: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="beats-")
        self.folder = Path(self._folder.name)
        self.broker: Any = fleet.redis()
        self.store: Any = None
        self._urls: list[tuple[Any, str]] = [(self.broker, self.broker.fresh_url())]
        broker = self._urls[0][1]
        if ledger in {"redis", "postgresql", "mariadb"}:
            self.store = getattr(fleet, ledger)()
            self._urls.append((self.store, self.store.fresh_url()))
            ledger = self._urls[1][1]
        elif ledger == "sqlite":
            ledger = f"sqlite:///{self.folder / 'ledger.sqlite'}"
        self.env = {
            "BEAT_BROKER": broker,
            "BEAT_LEDGER": ledger,
            "BEAT_LEASE": str(LEASE),
            "BEAT_SCHEDULE": json.dumps(schedule),
            "BEAT_NOTES": str(self.folder / "notes"),
            **env,
        }
        self.ledger: Any = open_ledger(ledger, schema=None, create_schema=True)
        self.ledger.create_schema()
        self.queue = redis.Redis.from_url(broker)
        self.processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()
        self.ledger.close()
        self.queue.close()
        for server, url in self._urls:
            server.put_back(url)
        self._folder.cleanup()

    def beat(self, name: str, *, file: str = "", **env: str) -> Beat:
        """A beat that has begun to start."""
        beat = Beat(self.folder, name, {**self.env, **env}, file=file)
        self.processes.append(beat)
        beat.start()
        return beat

    def worker(self, name: str, **options: Any) -> Worker:
        """A worker that has begun to start."""
        worker = Worker(PROJECT, folder=self.folder, name=name, env=self.env, **options)
        self.processes.append(worker)
        worker.start()
        return worker

    def sent(self) -> list[Sent]:
        """What is in the queue, oldest first."""
        found: list[Any] = list(self._asked(lambda: self.queue.lrange("celery", 0, -1)))
        headers = [json.loads(message)["headers"] for message in reversed(found)]
        return [
            Sent(
                each["effectonce_entry"].partition("#")[0], datetime.fromisoformat(each["effectonce_tick"]), each["id"]
            )
            for each in headers
        ]

    def instants(self, entry: str) -> list[float]:
        """The instants of one entry, in seconds."""
        return [sent.instant.timestamp() for sent in self.sent() if sent.entry == entry]

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Ask the broker, which may just be starting."""
        answers: list[Any] = []

        def answered() -> bool:
            try:
                answers.append(question())
            except redis.RedisError:
                return False
            return True

        assert wait_until(answered, seconds=40)
        return answers[-1]

    def wait_sent(self, more: int, *, entry: str = "") -> None:
        """Wait until *more* messages have come."""
        wanted = self.count(entry) + more
        self.wait(lambda: self.count(entry) >= wanted, f"{more} more are sent")

    def count(self, entry: str = "") -> int:
        return len(self.instants(entry)) if entry else int(self._asked(lambda: self.queue.llen("celery")))

    def wait(self, ready: Any, what: str, *, seconds: float = 40.0) -> None:
        """Wait until *ready*; fail with all logs."""
        if not wait_until(ready, seconds=seconds):
            pytest.fail(f"waited in vain until {what}\n{self.logs()[-6000:]}")

    def wait_quiet(self) -> None:
        """Wait until nothing is being sent, and nothing will be for half a second."""
        schedule = self.ledger.schedule
        self.wait(
            lambda: (
                0.2 < time.time() % 1 < 0.5
                and not [row for seat in schedule.seats() for row in schedule.unmarked(seat.name)]
            ),
            "nothing is being sent",
        )

    def leader(self, *beats: Beat) -> Beat:
        """The one that leads."""
        self.wait(lambda: any(beat.leads() for beat in beats), "one leads")
        return next(beat for beat in beats if beat.leads())

    def logs(self) -> str:
        return "\n".join(f"--- {file.name}\n{file.read_text()}" for file in sorted(self.folder.glob("*.log")))

    def save(self, beat: Beat) -> Path:
        """A copy of a beat's schedule file, as it is now."""
        kept = self.folder / "kept"
        kept.mkdir(exist_ok=True)
        for file in self.folder.glob(f"{beat.file.name}*"):
            shutil.copy(file, kept / file.name)
        return kept

    def restore(self, kept: Path) -> None:
        """Put a copy back."""
        for file in kept.iterdir():
            shutil.copy(file, self.folder / file.name)


def assert_once(place: Place, entry: str, every: float) -> None:
    """Each instant of the grid, from the first to the last that came, was sent once, under an id of its own."""
    instants = place.instants(entry)
    assert len(set(instants)) == len(instants), f"twice: {instants}\n{place.logs()[-6000:]}"
    ids = [sent.task_id for sent in place.sent() if sent.entry == entry]
    assert len(set(ids)) == len(ids)
    assert all(instant % every == 0 for instant in instants)
    expected = [min(instants) + every * number for number in range(len(instants))]
    assert sorted(instants) == expected, f"missed: {sorted(instants)}\n{place.logs()[-6000:]}"
