"""A crew: two workers of one kind on a Redis database of their own, and what their bodies noted."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from effectonce.lab.process_tree import children, wait_until
from effectonce.lab.processes import Worker

APP = "tests.integration.visibility.posts"
TIMEOUT = 3
DEADLINE = 60.0


class Crew:
    """Workers that share a broker. *options* are those of the transport, *settings* those of EffectOnce."""

    def __init__(
        self,
        name: str,
        broker: str,
        folder: Path,
        *,
        database: str,
        pool: str = "prefork",
        concurrency: int = 1,
        options: Mapping[str, Any] = {},
        settings: Mapping[str, Any] = {},
        queues: tuple[str, ...] = ("celery",),
        drained: Callable[[], bool] | None = None,
    ) -> None:
        self.name, self.pool, self.queues = name, pool, queues
        self._database = database
        self.is_drained = drained or self._is_drained
        self.folder = folder / name
        self.folder.mkdir()
        self.options = {"visibility_timeout": TIMEOUT, **options}
        self._env = {
            "POSTS_FOLDER": str(self.folder),
            "POSTS_BROKER": broker,
            "POSTS_OPTIONS": json.dumps(self.options),
            "POSTS_SETTINGS": json.dumps(settings),
        }
        self._concurrency = concurrency
        self.workers: list[Worker] = []
        self._app = Celery(f"sender of {name}", broker=broker, set_as_current=False)
        self._app.conf.update(broker_transport_options=self.options, task_ignore_result=True)

    def start(self, *, concurrency: int | None = None) -> "Crew":
        """Start one more worker; does not wait."""
        worker = Worker(
            APP,
            folder=self.folder,
            name=f"{self.name}-{len(self.workers)}",
            pool=self.pool,
            concurrency=concurrency or self._concurrency,
            queues=self.queues,
            env=self._env,
        )
        worker.start()
        self.workers.append(worker)
        return self

    def wait_ready(self) -> "Crew":
        for worker in self.workers:
            worker.wait_ready()
        return self

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self._app.close()

    def send(self, task: str, what: str, *args: Any, **options: Any) -> None:
        self._app.send_task(f"{APP}.{task}", (what, *args), **options)

    def let_go(self, what: str) -> None:
        (self.folder / f"let-go-{what}").touch()

    def notes(self, what: str) -> list[tuple[int, float]]:
        """Who noted it, and when."""
        file = self.folder / "notes"
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return [(int(line[1]), float(line[2])) for line in lines if line[0] == what]

    def bodies(self, what: str) -> int:
        return len(self.notes(f"{what}:began"))

    def wait(self, ready: Callable[[], bool], what: str, *, seconds: float = DEADLINE) -> None:
        if not wait_until(ready, seconds=seconds):
            logs = "\n".join(worker.log_text()[-3000:] for worker in self.workers if worker.log.exists())
            pytest.fail(f"{self.name}: waited in vain until {what}\n{logs}")

    def wait_noted(self, what: str, number: int = 1, *, seconds: float = DEADLINE) -> None:
        self.wait(lambda: len(self.notes(what)) >= number, f"{what} was noted {number} times", seconds=seconds)

    def wait_log(self, words: str) -> None:
        self.wait(lambda: words in self.logs(), f"the log says {words!r}")

    def _is_drained(self) -> bool:
        """Tell whether the broker has neither queued nor unacknowledged messages."""
        with redis.Redis.from_url(self._database) as client:
            prefix = self.options.get("global_keyprefix", "")
            kept = {key.decode().removeprefix(prefix) for key in client.scan_iter()}
        return not {key for key in kept if key.startswith(("unacked", *self.queues))} - {"unacked_mutex"}

    def worker_of(self, pid: int) -> Worker:
        """The worker whose main process or child noted something."""
        return next(w for w in self.workers if w.is_running and pid in {w.pid, *children(w.pid)})

    def logs(self) -> str:
        return "".join(worker.log_text() for worker in self.workers)
