"""One server of our own: started when asked for, killed and started again as one likes."""

import contextlib
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from effectonce.lab.ports import free_port
from effectonce.lab.process_tree import descendants, is_alive, wait_until
from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.accounts import Account, running_as
from effectonce.lab.servers.faults import ServiceFailed

BOOT_SECONDS = 60.0
STOP_SECONDS = 20.0
PORT_TRIES = 3


class Server(ABC):
    """A server in *folder*, on a port that it keeps for life.

    ``start`` returns when the server answers. Data survives ``stop`` and ``kill``, as far as the server itself keeps
    it.
    """

    name: ClassVar[str]
    variable: ClassVar[str] = ""
    """What names a server of somebody else that is used instead, if anything does."""
    """Names a server of somebody else's, to be used instead."""
    last_words: ClassVar[signal.Signals] = signal.SIGKILL
    """What the reaper sends first when the run was killed."""

    def __init__(self, folder: Path, *, reaper: Reaper) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.port = 0
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """The address for clients; the same one after each start."""

    @property
    def pid(self) -> int:
        """The main process."""
        if self._process is None:
            message = f"{self.name} does not run"
            raise ServiceFailed(message)
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Tell whether the main process lives."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server unless it runs, and return when it answers."""
        if self.is_running:
            return
        self._forget()
        if self.port:
            self._launch()
            return
        self._prepare()
        for tries_left in reversed(range(PORT_TRIES)):
            self.port = free_port()
            try:
                self._launch()
            except ServiceFailed:
                self.kill()
                if not tries_left:
                    self.port = 0
                    raise
            else:
                return

    def stop(self) -> None:
        """Ask the server to end, and return when it has."""
        if self.is_running:
            self._signal(signal.SIGCONT)
            self._ask_to_end()
            try:
                self._wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget()

    def kill(self) -> None:
        """End the server and all its processes with SIGKILL, and return when they are gone."""
        if self._process is not None:
            tree = [self._process.pid, *descendants(self._process.pid)]
            self._signal(signal.SIGKILL)
            self._process.wait()
            wait_until(lambda: not any(is_alive(pid) for pid in tree))
        self._forget()

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the server: connections stay open and nothing answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen server go on; one that has ended stays so."""
        if self.is_running:
            self._signal(signal.SIGCONT)

    def prepare(self) -> None:  # noqa: B027 - most servers need nothing
        """Make the files that the server needs before its first start."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """Return the command that runs the server in the foreground."""

    @abstractmethod
    def answers(self) -> bool:
        """Tell whether the server serves a client now."""

    def environment(self) -> Mapping[str, str]:
        """Return the variables that the server sees besides ours."""
        return {}

    def account(self) -> Account | None:
        """Return the account that the server runs as, or None for ours."""
        return None

    @abstractmethod
    def fresh_url(self) -> str:
        """Return the address of an empty place (database, virtual host)."""

    def put_back(self, url: str) -> None:  # noqa: B027 - a place that costs nothing is left as it is
        """Take a place back that ``fresh_url`` gave."""

    def _ask_to_end(self) -> None:
        os.kill(self.pid, signal.SIGTERM)

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.prepare()

    def _launch(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **self.environment()},
                start_new_session=True,
                **running_as(self.account()),
            )
        self._reaper.watch(self._process.pid, last_words=self.last_words)
        self._await_answer(self._process)

    def _await_answer(self, process: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + BOOT_SECONDS
        while not self.answers():
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=0.05)
                self._fail(f"ended with code {code} while it started")
            if time.monotonic() > deadline:
                self._fail(f"did not answer within {BOOT_SECONDS:.0f} s")

    def _fail(self, what: str) -> None:
        lines = self.log.read_text(errors="replace").splitlines()[-30:]
        message = "\n  ".join([f"{self.name} {what}; the end of its log:", *lines])
        raise ServiceFailed(message)

    def _wait(self, seconds: float) -> None:
        if self._process is not None:
            self._process.wait(timeout=seconds)

    def _signal(self, number: signal.Signals) -> None:
        for pid in (self.pid, *descendants(self.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _forget(self) -> None:
        if self._process is not None:
            self._reaper.forget(self._process.pid)
        self._process = None
