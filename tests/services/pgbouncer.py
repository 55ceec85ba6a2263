"""PgBouncer in transaction mode before PostgreSQL: each transaction may get another session of the database.

Its pool is small, so that sessions do change hands. What a program leaves in a session is somebody else's afterwards.
"""

from collections.abc import Sequence
from pathlib import Path

import psycopg
from sqlalchemy import URL, make_url

from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.accounts import Account, own_files, plain_account
from effectonce.lab.servers.faults import ServiceMissing
from effectonce.lab.servers.server import Server
from tests.services import programs
from tests.services.given import GivenPostgreSQL
from tests.services.postgresql import PostgreSQL

SESSIONS = 12


class PgBouncer(Server):
    """A pooler before the PostgreSQL of this test run."""

    name = "PgBouncer"
    variable = "EFFECTONCE_TEST_PGBOUNCER_URL"

    def __init__(self, folder: Path, *, reaper: Reaper, behind: PostgreSQL | GivenPostgreSQL) -> None:
        super().__init__(folder, reaper=reaper)
        self._behind = behind

    @property
    def url(self) -> str:
        """The address of the maintenance database through the pooler."""
        return self._through(self._behind.url)

    @staticmethod
    def find() -> Path:
        """Return the program, installing it if need be."""
        found = programs.find("pgbouncer")
        if found:
            return found
        reason = programs.install_debian("pgbouncer")
        found = programs.find("pgbouncer")
        if found:
            return found
        message = f"no PgBouncer: install pgbouncer, or set {PgBouncer.variable} ({reason})"
        raise ServiceMissing(message)

    def prepare(self) -> None:
        """Find the program."""
        self._account = plain_account()
        self._program = self.find()

    def command(self) -> Sequence[str]:
        """Write the settings, which name the port, and run in the foreground."""
        behind = self._server
        users, settings = self.folder / "users", self.folder / "pgbouncer.ini"
        users.write_text(f'"{behind.username}" "{behind.password or ""}"\n')
        settings.write_text(
            f"[databases]\n* = host={behind.host or '127.0.0.1'} port={behind.port or 5432}\n"
            "[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = plain\nauth_file = {users}\n"
            f"pool_mode = transaction\ndefault_pool_size = {SESSIONS}\nmax_client_conn = 500\n"
        )
        own_files(self._account, self.folder, users, settings)
        return [str(self._program), str(settings)]

    def account(self) -> Account | None:
        """Run as a plain account when we are root."""
        return self._account

    def answers(self) -> bool:
        """Log in, through to the database."""
        try:
            with psycopg.connect(self.url.replace("+psycopg", ""), connect_timeout=10, prepare_threshold=None):
                return True
        except psycopg.OperationalError:
            return False

    def fresh_url(self) -> str:
        """Return the address of a new, empty database, through the pooler."""
        return self._through(self._behind.fresh_url())

    def put_back(self, url: str) -> None:
        """Remove a database that ``fresh_url`` gave."""
        server = self._server
        direct = make_url(url).set(host=server.host, port=server.port)
        self._behind.put_back(direct.render_as_string(hide_password=False))

    @property
    def _server(self) -> URL:
        return make_url(self._behind.url)

    def _through(self, url: str) -> str:
        return make_url(url).set(host="127.0.0.1", port=self.port).render_as_string(hide_password=False)
