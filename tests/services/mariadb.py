"""MariaDB, never as root: a data folder of its own, with a database of its own for each test.

Each commit is written before it is answered, so that it survives a kill of the server. It is not flushed to the disk:
no test takes the power away.
"""

import itertools
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pymysql

from effectonce.lab.servers.accounts import Account, own_files, plain_account, running_as
from effectonce.lab.servers.faults import ServiceFailed, ServiceMissing
from effectonce.lab.servers.server import Server
from tests.services import programs

OWNER = "effectonce"


class MariaDB(Server):
    """A server that recovers after a kill as InnoDB does."""

    name = "MariaDB"
    variable = "EFFECTONCE_TEST_MARIADB_URL"

    @property
    def url(self) -> str:
        """The address of a database that no test gets, as SQLAlchemy reads it."""
        return self._address("mysql")

    @staticmethod
    def find() -> Path:
        """Return the server's program, installing it if need be."""
        found = programs.find("mariadbd")
        if found and programs.find("mariadb-install-db"):
            return found
        reason = programs.install_debian("mariadb-server")
        found = programs.find("mariadbd")
        if found and programs.find("mariadb-install-db"):
            return found
        message = f"no MariaDB: install mariadb-server, or set {MariaDB.variable} ({reason})"
        raise ServiceMissing(message)

    def prepare(self) -> None:
        """Find the program and make the data folder."""
        self._account = plain_account()
        self._password = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._program = self.find()
        own_files(self._account, self.folder)
        self._init_data()
        self._write_first_words()

    def command(self) -> Sequence[str]:
        """Listen on the loopback interface only; the socket file, which has no name of its own, lies in the folder."""
        options = {
            "datadir": self.folder / "data",
            "port": self.port,
            "bind-address": "127.0.0.1",
            "socket": self.folder / "socket",
            "pid-file": self.folder / "pid",
            "init-file": self.folder / "first.sql",
            "max-connections": 300,
            "innodb-buffer-pool-size": "64M",
            "innodb-log-file-size": "32M",
            "innodb-flush-log-at-trx-commit": 2,
        }
        words = [f"--{name}={value}" for name, value in options.items()]
        return [str(self._program), "--no-defaults", *words, "--skip-name-resolve", "--skip-log-bin"]

    def environment(self) -> Mapping[str, str]:
        """A zone with a summer time: what the ledger writes must not depend on it."""
        return {"HOME": str(self.folder), "LC_ALL": "C", "TZ": "Europe/Berlin"}

    def account(self) -> Account | None:
        """Run as a plain account when we are root."""
        return self._account

    def answers(self) -> bool:
        """Log in; a server that still recovers refuses."""
        try:
            self._connect().close()
        except pymysql.OperationalError:  # `pymysql.err` is another module once Django has taken it for MySQLdb
            return False
        return True

    def fresh_url(self) -> str:
        """Return the address of a new, empty database."""
        name = f"once_{os.getpid()}_{next(self._numbers)}"
        self._execute(f"create database {name}")
        return self._address(name)

    def put_back(self, url: str) -> None:
        """Remove a database that ``fresh_url`` gave, whoever is still connected."""
        name = url.rpartition("/")[2]
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute("select id from information_schema.processlist where db = %s", (name,))
            for (session,) in cursor.fetchall():
                cursor.execute(f"kill hard connection {int(session)}" if session else "do 0")
            cursor.execute(f"drop database if exists {name}")

    def _execute(self, statement: str) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)

    def _connect(self) -> "pymysql.Connection[pymysql.cursors.Cursor]":
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=OWNER,
            password=self._password,
            database="mysql",
            autocommit=True,
            connect_timeout=10,
        )

    def _address(self, database: str) -> str:
        return f"mariadb+pymysql://{OWNER}:{self._password}@127.0.0.1:{self.port}/{database}"

    def _init_data(self) -> None:
        command = [
            str(programs.find("mariadb-install-db")),
            *("--no-defaults", f"--datadir={self.folder / 'data'}", "--skip-test-db", "--innodb-log-file-size=32M"),
            f"--tmpdir={self.folder}",
        ]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, **self.environment()},
            **running_as(self._account),
        )
        if done.returncode:
            message = f"mariadb-install-db failed: {done.stderr or done.stdout}"
            raise ServiceFailed(message)

    def _write_first_words(self) -> None:
        """Statements that the server runs at each start: root has no password, and is let in by the socket only."""
        file = self.folder / "first.sql"
        file.write_text(
            f"create user if not exists {OWNER}@'127.0.0.1' identified by '{self._password}';\n"
            f"grant all on *.* to {OWNER}@'127.0.0.1' with grant option;\n"
        )
        own_files(self._account, file)
