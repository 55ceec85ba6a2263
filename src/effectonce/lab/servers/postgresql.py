"""PostgreSQL, never as root: a cluster of its own, with a new database for whoever asks.

``fsync`` stays on: commits are what we test.
"""

import itertools
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg
from psycopg import sql

from effectonce.lab.servers import programs
from effectonce.lab.servers.accounts import Account, plain_account, running_as
from effectonce.lab.servers.faults import ServiceFailed, ServiceMissing
from effectonce.lab.servers.server import Server

OWNER = "effectonce"
MISSING = "no PostgreSQL: install the server (initdb, postgres)"


class PostgreSQL(Server):
    """A cluster that recovers after a kill as PostgreSQL does."""

    name = "PostgreSQL"
    last_words = signal.SIGQUIT
    """An immediate shutdown gives its shared memory back, SIGKILL does not."""

    @property
    def url(self) -> str:
        """The address of the maintenance database, as SQLAlchemy reads it."""
        return self._address("postgres")

    @staticmethod
    def find() -> Path:
        """Return the folder of the server's programs; raises ServiceMissing."""
        found = programs.find("initdb")
        if found:
            return found.resolve().parent
        raise ServiceMissing(MISSING)

    def prepare(self) -> None:
        """Find the programs and make the cluster."""
        self._account = plain_account()
        self._password = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        programs_folder = self.find()
        if not self._can_run(programs_folder / "initdb"):
            programs_folder = self._copy(programs_folder)
        self._programs = programs_folder
        self._init_cluster()

    def command(self) -> Sequence[str]:
        """Listen on the loopback interface only, without a socket file."""
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 200,
            "shared_buffers": "64MB",
            "max_wal_size": "256MB",
            "wal_level": "minimal",
            "max_wal_senders": 0,
            "log_min_messages": "warning",
        }
        words = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *words]

    def environment(self) -> Mapping[str, str]:
        """Keep the owner's locale and home out."""
        return {"HOME": str(self.folder), "LC_ALL": "C", "TZ": "UTC"}

    def account(self) -> Account | None:
        """Run as a plain account when we are root."""
        return self._account

    def answers(self) -> bool:
        """Log in; a server that still recovers refuses."""
        try:
            with self._connect():
                return True
        except psycopg.OperationalError:
            return False

    def fresh_url(self) -> str:
        """Return the address of a new, empty database."""
        name = f"once_{os.getpid()}_{next(self._numbers)}"
        with self._connect() as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        return self._address(name)

    def put_back(self, url: str) -> None:
        """Remove a database that ``fresh_url`` gave, whoever is still connected."""
        name = url.rpartition("/")[2]
        with self._connect() as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True, connect_timeout=10)

    def _address(self, database: str) -> str:
        return f"postgresql+psycopg://{OWNER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def _ask_to_end(self) -> None:
        os.kill(self.pid, signal.SIGINT)  # "fast": it does not wait for clients

    def _init_cluster(self) -> None:
        self._own(self.folder)
        password = self.folder / "password"
        password.write_text(self._password)
        self._own(password)
        done = self._run(
            self._programs / "initdb",
            *("--pgdata", str(self.folder / "data"), "--username", OWNER, "--pwfile", str(password)),
            *("--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C", "--no-instructions"),
        )
        if done.returncode:
            message = f"initdb failed: {done.stderr or done.stdout}"
            raise ServiceFailed(message)

    def _can_run(self, program: Path) -> bool:
        try:
            return self._run(program, "--version").returncode == 0
        except PermissionError:
            return False

    def _copy(self, programs_folder: Path) -> Path:
        """Copy a package's programs to where the plain account may read them; they find their libraries by place."""
        package = programs_folder.parents[1]
        site = package.parent
        for folder in (package, site / f"{package.name}.libs"):
            if folder.exists():
                shutil.copytree(folder, self.folder / "programs" / folder.name)
        return self.folder / "programs" / programs_folder.relative_to(site)

    def _run(self, program: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [program, *words],
            check=False,
            capture_output=True,
            text=True,
            cwd="/",
            env={**os.environ, **self.environment()},
            **running_as(self._account),
        )

    def _own(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.uid, self._account.gid)
