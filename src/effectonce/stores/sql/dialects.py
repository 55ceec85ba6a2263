"""What differs between databases: clock, try-lock, how a transaction begins, and what an error means."""

from typing import Any, Protocol

from sqlalchemy.exc import DBAPIError

MICROS = 1_000_000

CLAIM_WAIT = 0.25
"""Seconds that a claim waits for SQLite's one writer: long enough for another short statement, not for a body."""


class Dialect(Protocol):
    """One kind of database."""

    name: str
    clock: str
    """SQL: the database's clock in microseconds, moving inside a transaction."""

    lock: str
    """SQL: true when the try-lock of ``:lock`` is ours until the transaction ends; never waits."""

    def begin(self, connection: Any, *, wait: float) -> None:
        """Begin for writing, waiting at most *wait* seconds where the whole database is locked."""
        ...

    def is_busy(self, error: DBAPIError) -> bool:
        """Somebody holds what we want."""
        ...

    def is_conflict(self, error: DBAPIError) -> bool:
        """The transaction lost against another and is to be run again."""
        ...

    def is_cut(self, error: DBAPIError) -> bool:
        """The server ended the connection, which the driver may not know yet."""
        ...

    def is_schema(self, error: DBAPIError) -> bool:
        """A table or column is not there."""
        ...

    def in_transaction(self, driver: Any) -> bool:
        """Whether the driver's connection is inside a transaction that can still commit."""
        ...

    def has_failed(self, driver: Any) -> bool:
        """Whether the transaction is open and can only be rolled back."""
        ...

    def is_autocommit(self, driver: Any) -> bool:
        """Whether each statement would commit by itself."""
        ...


class PostgreSQL:
    """PostgreSQL through psycopg 3."""

    name = "postgresql"
    clock = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    lock = "pg_try_advisory_xact_lock(:lock)"
    _CONFLICTS = frozenset({"40001", "40P01"})
    _SCHEMA = frozenset({"42P01", "42703", "3F000"})
    _CUTS = frozenset({"57P01", "57P02", "57P03"})
    _INTRANS, _INERROR = 2, 3

    def begin(self, connection: Any, *, wait: float) -> None:
        """Nothing: the driver begins with the first statement."""

    def is_busy(self, error: DBAPIError) -> bool:
        """A lock timeout that the user has set is busy, not away."""
        return _sqlstate(error) == "55P03"

    def is_conflict(self, error: DBAPIError) -> bool:
        """Serialization failure or deadlock."""
        return _sqlstate(error) in self._CONFLICTS

    def is_cut(self, error: DBAPIError) -> bool:
        """Shut down, crashed, or not up yet; class 08 is the connection itself."""
        state = _sqlstate(error) or ""
        return state in self._CUTS or state.startswith("08")

    def is_schema(self, error: DBAPIError) -> bool:
        """Undefined table, column or schema."""
        return _sqlstate(error) in self._SCHEMA

    def in_transaction(self, driver: Any) -> bool:
        """Inside a transaction, and not in a failed one."""
        return int(driver.info.transaction_status) == self._INTRANS

    def has_failed(self, driver: Any) -> bool:
        """A statement failed: COMMIT would answer ROLLBACK, without an error."""
        return int(driver.info.transaction_status) == self._INERROR

    def is_autocommit(self, driver: Any) -> bool:
        """The driver's connection was made so."""
        return bool(driver.autocommit)


class SQLite:
    """SQLite through the standard driver: one writer a file, and a locked file is busy."""

    name = "sqlite"
    clock = "cast((julianday('now') - 2440587.5) * 86400000000 as integer)"
    lock = ":lock is not null"

    def begin(self, connection: Any, *, wait: float) -> None:
        """Take the write lock now; a deferred begin would find out too late (SQLITE_BUSY_SNAPSHOT)."""
        driver = connection.connection.dbapi_connection
        driver.execute(f"pragma busy_timeout = {int(wait * 1000)}")
        if not driver.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def is_busy(self, error: DBAPIError) -> bool:
        """The file is locked by another writer."""
        return "locked" in str(error.orig)

    def is_conflict(self, error: DBAPIError) -> bool:
        """A write after a read in one deferred transaction, or a lock met in the body."""
        return "locked" in str(error.orig)

    def is_cut(self, error: DBAPIError) -> bool:
        """Never: there is no server."""
        return error.connection_invalidated

    def is_schema(self, error: DBAPIError) -> bool:
        """No such table or column."""
        reason = str(error.orig)
        return "no such table" in reason or "no such column" in reason or "no column named" in reason

    def in_transaction(self, driver: Any) -> bool:
        """Inside a transaction."""
        return bool(driver.in_transaction)

    def has_failed(self, driver: Any) -> bool:
        """Never: a failed statement leaves SQLite's transaction as it was."""
        return driver is None

    def is_autocommit(self, driver: Any) -> bool:
        """Never: the transaction is begun by a statement of ours."""
        return driver is None


def dialect_of(name: str) -> Dialect:
    """The dialect that SQLAlchemy calls *name*; raises ValueError for one that is not there yet."""
    if name == "postgresql":
        return PostgreSQL()
    if name == "sqlite":
        return SQLite()
    message = f"a ledger on {name} is not there yet in this version; use postgresql+psycopg:// or sqlite:///"
    raise ValueError(message)


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)
