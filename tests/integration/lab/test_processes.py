"""Processes of the lab live, die and come back as told, and never outlive us."""

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from effectonce.lab.process_tree import is_alive, wait_until
from effectonce.lab.processes import Process, ProcessFailed, Worker
from effectonce.lab.reaper import Reaper

APP = "tests.integration.lab.idle"
NAPS = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"


@pytest.fixture
def worker(redis_url: str, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(APP, folder=tmp_path, env={"LAB_BROKER": redis_url})
    yield worker
    worker.kill()


def test_a_killed_worker_leaves_no_child_and_comes_back(worker: Worker) -> None:
    worker.start().wait_ready()
    first, pool = worker.pid, worker.children()
    assert len(pool) == 2
    worker.kill()
    assert not any(is_alive(pid) for pid in [first, *pool])
    assert not worker.is_running
    worker.start().wait_ready()
    assert worker.pid != first


def test_a_killed_child_is_replaced_by_its_worker(worker: Worker) -> None:
    worker.start().wait_ready()
    victim = worker.kill_child()
    assert wait_until(lambda: len(worker.children()) == 2 and victim not in worker.children())
    assert worker.is_running


def test_only_own_children_are_killed(worker: Worker) -> None:
    worker.start().wait_ready()
    with pytest.raises(ProcessFailed, match="no child"):
        worker.kill_child(os.getpid())


def test_a_worker_that_is_asked_to_stop_ends_by_itself(worker: Worker) -> None:
    worker.start().wait_ready()
    worker.pause()
    worker.stop()
    assert "Warm shutdown" in worker.log_text()
    assert not worker.is_running


def test_a_worker_that_cannot_start_says_why(tmp_path: Path) -> None:
    worker = Worker("tests.integration.lab.nowhere", folder=tmp_path)
    with pytest.raises(ProcessFailed, match=r"(?s)ended while it started.*nowhere"):
        worker.start().wait_ready()


def test_a_process_that_is_late_is_killed(tmp_path: Path) -> None:
    class Late(Process):
        def is_ready(self) -> bool:
            return False

    late = Late([sys.executable, "-c", NAPS + "; time.sleep(600)"], log=tmp_path / "late.log").start()
    with pytest.raises(ProcessFailed, match=r"was not ready within 0 s"):
        late.wait_ready(seconds=0.2)
    assert not late.is_running


def test_a_child_whose_parent_died_by_itself_is_killed_too(tmp_path: Path) -> None:
    process = Process([sys.executable, "-c", NAPS], log=tmp_path / "orphan.log").start()
    group = process.pid
    assert wait_until(lambda: not process.is_running)
    process.kill()
    assert wait_until(lambda: not _members(group))


def test_what_we_started_does_not_outlive_us(tmp_path: Path) -> None:
    folder = tmp_path / "room"
    folder.mkdir()
    script = f"""
        import sys
        from pathlib import Path
        from effectonce.lab.processes import Process
        from effectonce.lab.reaper import Reaper
        reaper = Reaper()
        reaper.remove({str(folder)!r})
        command = [sys.executable, "-c", {NAPS + "; time.sleep(600)"!r}]
        process = Process(command, log=Path({str(tmp_path / "log")!r}), reaper=reaper)
        print(process.start().pid, flush=True)
        sys.stdin.read()
    """
    us = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert us.stdout
    assert us.stdin
    group = int(us.stdout.readline())
    us.kill()
    us.wait()
    us.stdin.close()
    us.stdout.close()
    assert wait_until(lambda: not _members(group))
    assert wait_until(lambda: not folder.exists())


def test_a_reaper_that_is_closed_ends_what_it_watches(tmp_path: Path) -> None:
    reaper = Reaper()
    process = Process([sys.executable, "-c", "import time; time.sleep(600)"], log=tmp_path / "log", reaper=reaper)
    process.start()
    reaper.close()
    assert wait_until(lambda: not process.is_running)
    process.kill()


def _members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
