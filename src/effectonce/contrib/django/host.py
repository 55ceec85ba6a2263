"""Django as the host of a SQL ledger: its connections, and connections of our own made with its settings.

Claims, renewals and whatever else is no part of a body go over connections of our own, so they never meet a
transaction that the project has open. In a test case that Django rolls back there is only one connection that can see
anything: there they are savepoints on it.
"""

from collections.abc import Callable, Hashable
from typing import Any, Final

from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.db import Error, connections
from django.db.transaction import TransactionManagementError
from django.db.utils import ConnectionDoesNotExist, load_backend

from effectonce.contrib.django.blocks import AtomicBlock
from effectonce.contrib.django.hooks import has_block

_DRIVERS: Final = {
    "psycopg": "postgresql+psycopg",
    "pymysql": "mariadb+pymysql",
    "sqlite3": "sqlite",
}
_PYMYSQL: Final = "install PyMySQL and call pymysql.install_as_MySQLdb() in the settings"
_DURABLE: Final = "durable atomic block"


class DjangoHost:
    """The database of one alias."""

    def __init__(self, alias: str) -> None:
        self.alias = alias
        self.name = f"django://{alias}"

    @property
    def hint(self) -> str:
        """See `stores.sql.hosted.Host.hint`."""
        return f"run manage.py migrate --database={self.alias}, with 'effectonce.contrib.django' in INSTALLED_APPS"

    @property
    def drivername(self) -> str:
        """See `stores.sql.hosted.Host.drivername`."""
        try:
            driver = str(connections[self.alias].Database.__name__).partition(".")[0]
        except (ConnectionDoesNotExist, ImproperlyConfigured) as error:
            raise ValueError(str(error)) from error
        if driver == "psycopg2":
            message = f"the alias {self.alias!r} uses psycopg2; install psycopg (version 3)"
            raise ValueError(message)
        if driver == "MySQLdb":
            message = f"the alias {self.alias!r} uses mysqlclient, which does not tell of transactions; {_PYMYSQL}"
            raise ValueError(message)
        if driver not in _DRIVERS:
            databases = "PostgreSQL, MariaDB or SQLite"
            message = f"the alias {self.alias!r} uses {driver}; under Django this version needs {databases}"
            raise ValueError(message)
        return _DRIVERS[driver]

    @property
    def place(self) -> Hashable:
        """A test run changes the name of the database in the settings."""
        settings = self._settings
        return (str(settings["NAME"]), settings["HOST"], settings["PORT"], settings["USER"], self.pools)

    @property
    def pools(self) -> bool:
        """Not in a test run, which could not drop its database while a connection of ours is open."""
        return not hasattr(mail, "outbox")

    @property
    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = connections.settings[self.alias]
        return settings

    def connect(self) -> Any:
        """A new connection as Django makes them, signal and all; never one of a pool of Django's."""
        settings = self._settings
        options = {name: value for name, value in settings["OPTIONS"].items() if name != "pool"}
        backend = load_backend(settings["ENGINE"])
        wrapper = backend.DatabaseWrapper({**settings, "OPTIONS": options, "AUTOCOMMIT": True}, self.alias)
        wrapper.connect()
        wrapper.set_autocommit(False)
        return wrapper.connection

    def lend(self) -> Any:
        """This thread's connection of the driver."""
        connection = connections[self.alias]
        connection.ensure_connection()
        return connection.connection

    def is_open(self) -> bool:
        """Inside ``atomic``."""
        return bool(connections[self.alias].in_atomic_block)

    def is_callers(self) -> bool:
        """Inside an ``atomic`` that is not a test case's own."""
        return has_block(self.alias)

    def mark(self) -> Callable[[], bool]:
        """A hook that does nothing: Django forgets it when the savepoint that it was registered in is undone."""
        connection = connections[self.alias]
        if not connection.in_atomic_block:
            return lambda: True
        ran: list[bool] = []

        def hook() -> None:
            ran.append(True)

        connection.on_commit(hook)
        return lambda: bool(ran) or any(each is hook for _, each, _ in connection.run_on_commit)

    def on_commit(self, call: Callable[[], None]) -> None:
        """A robust hook."""
        connections[self.alias].on_commit(call, robust=True)

    def joins(self) -> bool:
        """Inside a test case that will be rolled back, and where the database is in the memory of this process."""
        connection = connections[self.alias]
        if any(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
            return True
        return connection.vendor == "sqlite" and bool(connection.is_in_memory_db())

    def block(self) -> AtomicBlock:
        """See `stores.sql.hosted.Host.block`."""
        return AtomicBlock(self.alias)

    def unsuitable(self) -> str | None:
        """Where Django does not manage transactions, ``atomic`` commits nothing."""
        connection = connections[self.alias]
        managed = connection.settings_dict["AUTOCOMMIT"]
        if connection.connection is not None and not connection.in_atomic_block:
            managed = managed and connection.autocommit
        return None if managed else f"autocommit is off for the alias {self.alias!r}, so atomic() does not commit"

    def meaning(self, error: BaseException) -> BaseException:
        """The driver's error is the cause of Django's."""
        return error.__cause__ if isinstance(error, Error) and error.__cause__ is not None else error

    def escape(self, error: BaseException) -> str | None:
        """What Django itself refuses inside an atomic block."""
        if isinstance(error, RuntimeError) and _DURABLE in str(error):
            return "it opened a durable atomic block, which cannot be part of another one"
        if isinstance(error, TransactionManagementError) and "when an 'atomic' block is active" in str(error):
            return "it tried to end the transaction of its atomic block"
        return None
