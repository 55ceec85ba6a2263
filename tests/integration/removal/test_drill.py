"""The drill of taking the library out again: the page's own commands leave nothing parked, held or unsent."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from effectonce.domain.claims import State
from effectonce.lab.process_tree import wait_until
from effectonce.lab.processes import Worker
from effectonce.stores.sql.ledger import SqlLedger

WITH, WITHOUT = "tests.integration.removal.shop", "tests.integration.removal.plain"
UNINSTALLED = """
import sys
sys.modules["effectonce"] = None
from celery.__main__ import main
main()
"""
"""``python -m celery`` where our package cannot be imported."""
MARK = "-- done --"
COMMANDS = """
from celery.bin.celery import celery
for words in {commands}:
    celery(["-A", "{project}", "once", *words], standalone_mode=False)
    print("-- done --", flush=True)
"""
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "take-it-out-again.md"


class Drill:
    """The project's folder, its workers, and the commands that the page says."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder = folder
        self.env = {"DRILL_FOLDER": str(folder), "DRILL_BROKER": broker, "DRILL_MODE": "enforce"}
        self.app = Celery("sender", broker=broker, backend=broker, set_as_current=False)
        self.ledger = SqlLedger.open(f"sqlite:///{folder / 'ledger.sqlite'}")
        self._workers: list[Worker] = []

    def worker(self, project: str) -> Worker:
        worker = Worker(project, folder=self.folder, name=f"w{len(self._workers)}", env=self.env)
        if project == WITHOUT:
            worker.command[1:3] = ["-c", UNINSTALLED]
        self._workers.append(worker)
        return worker.start().wait_ready()

    def close(self) -> None:
        for worker in self._workers:
            worker.kill()
        self.app.close()
        self.ledger.close()

    def run(self, *commands: str) -> list[str]:
        """``celery -A proj once ...``, as the page has it, one after the other in one process; what each printed."""
        words = [shlex.split(command) for command in commands]
        code = COMMANDS.format(project=WITH, commands=words)
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **self.env}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split(MARK)[:-1]

    def waiting(self) -> int:
        """How many messages of the order "later" the broker has: in its queue, or in a worker's hands."""
        with redis.Redis.from_url(self.env["DRILL_BROKER"]) as client:
            held = [*client.lrange("celery", 0, -1), *client.hvals("unacked")]
        return len([message for message in held if b"later" in message])

    def bodies(self, what: str) -> list[int]:
        file = self.folder / "bodies"
        lines = file.read_text().splitlines() if file.exists() else []
        return [int(line.split()[1]) for line in lines if line.split()[0] == what]

    def wait(self, ready: Any, what: str) -> None:
        if not wait_until(ready, seconds=60):
            logs = "".join(worker.log_text()[-3000:] for worker in self._workers)
            pytest.fail(f"waited in vain until {what}\n{logs}")


@pytest.fixture
def drill(tmp_path: Path, redis_url: str) -> Iterator[Drill]:
    drill = Drill(tmp_path, redis_url)
    yield drill
    drill.close()


def test_the_library_is_taken_out_and_nothing_is_left_behind(drill: Drill) -> None:
    """One message is done, one parked, one held, one between two tries; after it plain Celery ends them all."""
    worker = drill.worker(WITH)
    assert drill.app.send_task("pay", ["1"]).get(timeout=60) == "pay 1"
    hanging = drill.app.send_task("ship", ["hangs"])
    again = drill.app.send_task("ship", ["again"])
    drill.wait(lambda: drill.bodies("ship:hangs") and drill.bodies("ship:again"), "both are in their bodies")
    worker.kill_child(drill.bodies("ship:hangs")[0])
    drill.wait(lambda: drill.ledger.counts().get(State.UNKNOWN), "the hanging one is held")
    assert drill.ledger.outbox.depth().parked == 1
    worker.stop()

    drill.env["DRILL_MODE"] = "off"
    off = drill.worker(WITH)
    (drill.folder / "go-on").touch()
    *_, last = drill.run("rerun ship:hangs --yes", "relay --drain --timeout 30", "status --json")
    status = json.loads(last)
    assert [status["entries"].get(state, 0) for state in ("unknown", "poisoned")] == [0, 0]
    assert status["outbox"] == {"ready": 0, "parked": 0, "stuck": 0, "oldest": 0}
    assert drill.app.send_task("pay", ["2"]).get(timeout=60) == "pay 2"
    off.stop()

    drill.worker(WITHOUT)
    assert (hanging.get(timeout=60), again.get(timeout=60)) == ("ship hangs", "ship again")
    assert drill.app.send_task("pay", ["3"]).get(timeout=60) == "pay 3"
    drill.wait(lambda: len(drill.bodies("mail:3")) == 1, "plain Celery sends on")
    assert [len(drill.bodies(f"mail:{order}")) for order in "12"] == [1, 1]
    assert drill.waiting() == 1


def test_the_page_says_the_commands_of_the_drill() -> None:
    said = set(re.findall(r"once (rerun|relay --drain|status)", PAGE.read_text()))
    assert said == {"rerun", "relay --drain", "status"}
