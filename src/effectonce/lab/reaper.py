"""Ends what a run has started, when the run itself was killed.

The reaper is a process of its own, in a session of its own. It reads what to watch from a pipe whose other end only
the run holds: when the run is gone, however it went, the pipe ends, and the reaper ends the processes and removes
the folders. It needs nothing but the standard library, and works where Linux' parent-death signal does not
(macOS; a process that was started by a thread that has ended).
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import IO

PATIENCE = 5.0


class Reaper:
    """The run's end of the pipe."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own file
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    def watch(self, pid: int, *, last_words: signal.Signals = signal.SIGKILL) -> None:
        """End the process group *pid* if we are killed: first with *last_words*, after a while with SIGKILL."""
        self._tell(f"watch {pid} {int(last_words)}")

    def forget(self, pid: int) -> None:
        """Stop watching *pid*: it has ended, and its number may be somebody else's soon."""
        self._tell(f"forget {pid}")

    def remove(self, folder: str) -> None:
        """Remove *folder* at the end."""
        self._tell(f"remove {folder}")

    def close(self) -> None:
        """End what is still watched, remove the folders, end the reaper."""
        with contextlib.suppress(BrokenPipeError):
            self._pipe.close()
        self._process.wait()

    @property
    def _pipe(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise AssertionError
        return self._process.stdin

    def _tell(self, line: str) -> None:
        if self._pipe.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self._pipe.write(line.encode() + b"\n")
            self._pipe.flush()


def main() -> None:
    """Read the pipe to its end, then reap."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[int, int] = {}
    folders: list[str] = []
    for line in _lines():
        word, _, rest = line.partition(" ")
        if word == "watch":
            pid, last_words = rest.split()
            watched[int(pid)] = int(last_words)
        elif word == "forget":
            watched.pop(int(rest), None)
        elif word == "remove":
            folders.append(rest)
    _end(watched)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _lines() -> Iterator[str]:
    """Yield lines until the pipe ends or the parent is gone (a forked grandchild may hold the pipe open)."""
    parent = os.getppid()
    rest = b""
    while os.getppid() == parent:
        if not select.select([0], [], [], 1.0)[0]:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode()


def _end(watched: dict[int, int]) -> None:
    for pid, number in watched.items():
        _signal(pid, number)
    deadline = time.monotonic() + PATIENCE
    while any(_signal(pid, 0) for pid in watched) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in watched:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> bool:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
