"""Processes of our own that are started, killed, frozen and started again: any program, and Celery workers.

Each leads a session and a process group of its own, so that Ctrl-C on a terminal does not reach it and a kill reaches
all of it; nothing else is ever signalled. If we are killed ourselves, the reaper ends what we left.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self, TypeVar

from effectonce.lab.process_tree import children, descendants, is_alive, wait_until
from effectonce.lab.reaper import Reaper

T = TypeVar("T")

BOOT_SECONDS = 60.0
STOP_SECONDS = 15.0
READY = " ready."
LAST_LINES = 30


class ProcessFailed(Exception):
    """A process of ours did not start, ended too early, or was asked for while it does not run."""


def unbroken(call: Callable[[], T]) -> T:
    """Call in a thread, which no signal handler's exception can break off between a birth and its note.

    An exception that arrives meanwhile is raised when the call is over.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(call).result()


class Process:
    """One program with all that it starts; output goes to *log*, appended over all its lives."""

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        reaper: Reaper | None = None,
    ) -> None:
        self.command = [str(word) for word in command]
        self.log = log
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        """The main process, which is also the number of the group."""
        return self._running.pid

    @property
    def is_running(self) -> bool:
        """Tell whether the main process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the program unless it runs; does not wait until it is ready."""
        if self.is_running:
            return self
        self._forget()
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        unbroken(self._launch)
        return self

    def wait_ready(self, *, seconds: float = BOOT_SECONDS) -> Self:
        """Return when the program is ready; raise ProcessFailed with the end of its log when it ends or is late."""
        ready = wait_until(lambda: not self.is_running or self.is_ready(), seconds=seconds)
        if not self.is_running:
            self._fail("ended while it started")
        if not ready:
            self._fail(f"was not ready within {seconds:.0f} s")
        return self

    def is_ready(self) -> bool:
        """Tell whether the program does its work by now."""
        return self.is_running

    def log_text(self) -> str:
        """Return what this life of the program has written."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def wait_end(self, *, seconds: float, unless: Callable[[], bool] = lambda: False) -> bool:
        """Wait until the main process has ended by itself; tell whether it did in time, and before *unless* held."""
        wait_until(lambda: not self.is_running or unless(), seconds=seconds, every=0.1)
        return not self.is_running

    def stop(self, *, seconds: float = STOP_SECONDS) -> None:
        """Ask the program to end (SIGTERM, a worker's warm shutdown), and kill what has not ended after *seconds*."""
        if self._process is not None and self.is_running:
            self.resume()
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=seconds)
        self.kill()

    def kill(self) -> None:
        """End the whole group with SIGKILL, and return when all of it is gone; children do not outlive the main."""
        if self._process is not None:
            tree = descendants(self._process.pid)
            # A main process that died by itself may have left members of its group behind.
            self._signal_group(signal.SIGKILL)
            self._process.wait()
            for pid in tree:
                _signal(pid, signal.SIGKILL)
            wait_until(lambda: not any(is_alive(pid) for pid in tree))
        self._forget()

    def pause(self) -> None:
        """Freeze the whole group (SIGSTOP): connections stay open and nobody answers."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen group go on."""
        self._signal_group(signal.SIGCONT)

    def _launch(self) -> None:
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(  # noqa: S603 - starting the given program is what this is for
                self.command,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        if self._reaper is not None:
            self._reaper.watch(self._process.pid)

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None:
            message = f"{self.log.stem} does not run"
            raise ProcessFailed(message)
        return self._process

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _fail(self, what: str) -> None:
        lines = self.log_text().splitlines()[-LAST_LINES:]
        self.kill()
        raise ProcessFailed("\n  ".join([f"{self.log.stem} {what}; the end of its log:", *lines]))

    def _forget(self) -> None:
        if self._process is not None and self._reaper is not None:
            self._reaper.forget(self._process.pid)
        self._process = None


class Worker(Process):
    """``celery -A app worker`` as a user starts it.

    *app* is what ``-A`` gets; *folder* takes the log; *env* comes on top of ours. ``start()`` and ``wait_ready()`` are
    apart so that several can boot at once. A worker that was killed is started again with ``start()``.
    """

    def __init__(
        self,
        app: str,
        *,
        folder: Path,
        name: str = "worker",
        pool: str = "prefork",
        concurrency: int = 2,
        queues: Sequence[str] = (),
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        reaper: Reaper | None = None,
    ) -> None:
        command = [sys.executable, "-m", "celery", "-A", app, "worker", "-l", "INFO", "-P", pool]
        command += ["-c", str(concurrency), "-n", f"{name}-{os.getpid()}@%h"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-Q", ",".join(queues)] if queues else []
        super().__init__([*command, *options], log=folder / f"{name}.log", env=env, cwd=cwd, reaper=reaper)
        self.name = name

    def is_ready(self) -> bool:
        """Tell whether the worker has said that it consumes."""
        return READY in self.log_text()

    def children(self) -> list[int]:
        """Return the processes of the pool, none for threads and solo."""
        return children(self.pid)

    def kill_child(self, pid: int | None = None) -> int:
        """Kill one process of the pool with SIGKILL, the first unless *pid* is given, and return its number.

        Raises ProcessFailed when *pid* is none of this worker's: nobody else's process is ever killed.
        """
        pool = self.children()
        victim = pid if pid is not None else next(iter(pool), None)
        if victim is None or victim not in pool:
            message = f"{self.name} has no child {pid or ''}"
            raise ProcessFailed(message)
        _signal(victim, signal.SIGKILL)
        return victim


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
