"""All servers of one test run, each started when it is first asked for, all ended together."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.server import Server
from tests.services.given import Given, GivenMariaDB, GivenPostgreSQL, GivenRedis
from tests.services.mariadb import MariaDB
from tests.services.pgbouncer import PgBouncer
from tests.services.postgresql import PostgreSQL
from tests.services.rabbitmq import RabbitMQ
from tests.services.redis import Redis

OwnServer = TypeVar("OwnServer", bound=Server)
GivenServer = TypeVar("GivenServer", bound=Given)


class Fleet:
    """The servers of this process; ``close`` ends those that it started."""

    def __init__(self) -> None:
        self._servers: dict[str, Server | Given] = {}
        self._folder: Path | None = None
        self._reaper: Reaper | None = None
        self._owner = os.getpid()

    def redis(self) -> Redis | GivenRedis:
        """Return the running Redis."""
        return self._given(Redis.variable, GivenRedis) or self._own(Redis)

    def rabbitmq(self) -> RabbitMQ | Given:
        """Return the running RabbitMQ."""
        return self._given(RabbitMQ.variable, Given) or self._own(RabbitMQ)

    def postgresql(self) -> PostgreSQL | GivenPostgreSQL:
        """Return the running PostgreSQL."""
        return self._given(PostgreSQL.variable, GivenPostgreSQL) or self._own(PostgreSQL)

    def second_postgresql(self) -> PostgreSQL:
        """Return another PostgreSQL, running, for what has two."""
        return self._own(PostgreSQL, called=f"{PostgreSQL.name}-2")

    def mariadb(self) -> MariaDB | GivenMariaDB:
        """Return the running MariaDB."""
        return self._given(MariaDB.variable, GivenMariaDB) or self._own(MariaDB)

    def pgbouncer(self) -> PgBouncer | GivenPostgreSQL:
        """Return the running PgBouncer, and have its PostgreSQL run."""
        given = self._given(PgBouncer.variable, GivenPostgreSQL)
        return given or self._own(PgBouncer, behind=self.postgresql())

    def close(self) -> None:
        """End our servers and remove their folder; a forked child of this process leaves them alone."""
        if os.getpid() != self._owner or self._folder is None or self._reaper is None:
            return
        for server in self._servers.values():
            if isinstance(server, Server):
                server.stop()
        self._servers.clear()
        self._reaper.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = self._reaper = None

    def _given(self, variable: str, kind: type[GivenServer]) -> GivenServer | None:
        url = os.environ.get(variable)
        if not url:
            return None
        server = self._servers.setdefault(variable, kind(url, variable=variable))
        assert isinstance(server, kind)
        return server

    def _own(self, kind: type[OwnServer], *, called: str = "", **options: Any) -> OwnServer:
        folder, reaper = self._place()
        name = called or kind.name
        server = self._servers.get(name)
        if server is None:
            server = kind(folder / name.lower(), reaper=reaper, **options)
            self._servers[name] = server
        assert isinstance(server, kind)
        server.start()
        return server

    def _place(self) -> tuple[Path, Reaper]:
        if self._folder is None or self._reaper is None:
            self._folder = Path(tempfile.mkdtemp(prefix="effectonce-tests-"))
            self._folder.chmod(0o711)  # PostgreSQL runs as another user and has its folder inside
            self._reaper = Reaper()
            self._reaper.remove(str(self._folder))
            atexit.register(self.close)
        return self._folder, self._reaper
