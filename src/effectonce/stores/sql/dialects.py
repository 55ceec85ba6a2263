"""What differs between databases: clock, try-lock, how a transaction begins, and what an error means."""

import re
from typing import Any, Literal

from sqlalchemy.exc import DBAPIError

from effectonce.stores.sql.dialect import Dialect
from effectonce.stores.sql.mariadb import MariaDB

__all__ = ["CLAIM_WAIT", "MICROS", "Dialect", "PostgreSQL", "SQLite", "dialect_of"]

MICROS = 1_000_000

CLAIM_WAIT = 0.25
"""Seconds that a claim waits for SQLite's one writer: long enough for another short statement, not for a body."""


class _Returning:
    """What databases share that answer a statement which writes with the rows that it wrote."""

    key = "key"
    at_once = soon = shared = by_key = by_due = ""
    returning_fence = " returning fence"
    loses_quietly = False
    ends: re.Pattern[str] | None = None

    def new_fence(self, expression: str) -> str:
        """As it is: the row comes back."""
        return expression

    def fence_of(self, result: Any) -> int | None:
        """Of the row that came back."""
        fence: int | None = result.scalar()
        return fence

    def is_mine(self, result: Any) -> bool:
        """It says so."""
        return bool(result.scalar())

    def insert_new(self, into: str, columns: str, values: str, *, unique: str) -> str:
        """The standard's clause."""
        return f"insert into {into} ({columns}) {values} on conflict ({unique}) do nothing"

    def limit_silence(self, connection: Any, seconds: float | None) -> None:
        """Nothing: `mortal` does, or there is no server."""

    def read_past(self, connection: Any) -> None:
        """Nothing: a plain read waits for nobody."""

    def let_go(self, connection: Any) -> None:
        """Nothing: the try-lock is one that only one of them has."""

    def check_server(self, connection: Any) -> str | None:
        """Any server that speaks the statements."""
        return None if connection is not None else ""


class PostgreSQL(_Returning):
    """PostgreSQL through psycopg 3."""

    name = "postgresql"
    clock = "(extract(epoch from clock_timestamp()) * 1000000)::bigint"
    moment = "(extract(epoch from statement_timestamp()) * 1000000)::bigint"
    lock = "pg_try_advisory_xact_lock(:lock)"
    lock_of_row = "pg_try_advisory_xact_lock(('x' || encode(substring(digest from 1 for 8), 'hex'))::bit(64)::bigint)"
    mortal = (
        "set_config('tcp_keepalives_idle', '30', true) is not null "
        "and set_config('tcp_keepalives_interval', '10', true) is not null "
        "and set_config('tcp_keepalives_count', '3', true) is not null "
        "and set_config('idle_in_transaction_session_timeout', coalesce(cast(:silence as text), "
        "current_setting('idle_in_transaction_session_timeout')), true) is not null"
    )
    holder: str | None = (
        "select a.pid, a.application_name as name, coalesce(host(a.client_addr), 'local') as host, a.state, "
        "extract(epoch from clock_timestamp() - a.xact_start) as seconds "
        "from pg_locks l join pg_stat_activity a on a.pid = l.pid "
        "where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.pid <> pg_backend_pid() "
        "and l.database = (select oid from pg_database where datname = current_database()) "
        "and l.classid = cast(:high as bigint) and l.objid = cast(:low as bigint)"
    )
    share = "for share"
    lists: Literal["arrays", "json", "none"] = "arrays"
    skip_locked = " for update skip locked"
    _CONFLICTS = frozenset({"40001", "40P01"})
    _SCHEMA = frozenset({"42P01", "42703", "3F000"})
    _CUTS = frozenset({"57P01", "57P02", "57P03"})
    _IDLE, _INTRANS, _INERROR = 0, 2, 3
    _READ_COMMITTED = 2

    def begin(self, connection: Any, *, wait: float) -> None:
        """Nothing: the driver begins with the first statement."""

    def see_commits(self, connection: Any) -> None:
        """READ COMMITTED, whatever the engine's level: what is read under the try-lock must not be older than it."""
        driver = connection.connection.dbapi_connection
        level = driver.isolation_level
        is_default = level is None and connection.default_isolation_level == "READ COMMITTED"
        if driver.autocommit or not (is_default or level == self._READ_COMMITTED):
            connection.execution_options(isolation_level="READ COMMITTED")

    def let_readers_in(self, connection: Any) -> None:
        """Nothing: they never wait for each other."""

    def reason(self, error: DBAPIError) -> str:
        """The words of a server that lacks something or cannot be reached; of other errors the name and the state."""
        state = _sqlstate(error)
        if state is None or self.is_schema(error):
            return _first_line(error)
        return f"{type(error.orig).__name__} ({state})"

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

    def is_aborted(self, error: DBAPIError) -> bool:
        """In failed transaction."""
        return _sqlstate(error) == "25P02"

    def is_schema(self, error: DBAPIError) -> bool:
        """Undefined table, column or schema."""
        return _sqlstate(error) in self._SCHEMA

    def in_transaction(self, driver: Any) -> bool:
        """Inside a transaction, and not in a failed one."""
        return int(driver.pgconn.transaction_status) == self._INTRANS

    def has_failed(self, driver: Any) -> bool:
        """A statement failed: COMMIT would answer ROLLBACK, without an error."""
        return int(driver.pgconn.transaction_status) == self._INERROR

    def has_left(self, driver: Any) -> bool:
        """Idle."""
        return int(driver.pgconn.transaction_status) == self._IDLE

    def is_broken(self, driver: Any) -> bool:
        """Closed, and not by us."""
        return bool(driver.broken)

    def is_autocommit(self, driver: Any) -> bool:
        """The driver's connection was made so."""
        return bool(driver.autocommit)


class SQLite(_Returning):
    """SQLite through the standard driver: one writer a file, and a locked file is busy."""

    name = "sqlite"
    clock = "cast((julianday('now') - 2440587.5) * 86400000000 as integer)"
    moment = clock
    lock = ":lock is not null"
    lock_of_row = "digest is not null"
    mortal = "(:silence is null or 1 = 1)"
    holder: str | None = None
    share = ""
    lists: Literal["arrays", "json", "none"] = "none"
    skip_locked = ""
    _BUSY, _LOCKED = 5, 6

    def begin(self, connection: Any, *, wait: float) -> None:
        """Take the write lock now; a deferred begin would find out too late (SQLITE_BUSY_SNAPSHOT).

        The engine may be the user's: one that has begun already, deferred, begins again, and its own patience is
        given back, since the commit may have to wait for a reader.
        """
        driver = connection.connection.dbapi_connection
        (patience,) = driver.execute("pragma busy_timeout").fetchone()
        if driver.in_transaction:
            driver.execute("rollback")
        driver.execute(f"pragma busy_timeout = {int(wait * 1000)}")
        try:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        finally:
            driver.execute(f"pragma busy_timeout = {patience}")

    def see_commits(self, connection: Any) -> None:
        """Nothing: it begins under the write lock, and nobody commits after that."""

    def let_readers_in(self, connection: Any) -> None:
        """Write ahead."""
        if connection.exec_driver_sql("pragma journal_mode").scalar() != "wal":
            connection.exec_driver_sql("pragma journal_mode = wal")
        connection.rollback()

    def reason(self, error: DBAPIError) -> str:
        """SQLite's words name tables and files."""
        return _first_line(error)

    def is_busy(self, error: DBAPIError) -> bool:
        """The file is locked by another writer."""
        code = getattr(error.orig, "sqlite_errorcode", None)
        return "locked" in str(error.orig) if code is None else code & 0xFF in {self._BUSY, self._LOCKED}

    def is_conflict(self, error: DBAPIError) -> bool:
        """A write after a read in one deferred transaction, or a lock met in the body."""
        return self.is_busy(error)

    def is_cut(self, error: DBAPIError) -> bool:
        """Never: there is no server."""
        return error.connection_invalidated

    def is_aborted(self, error: DBAPIError) -> bool:
        """Never: a failed statement leaves the transaction as it was."""
        return error is None

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

    def has_left(self, driver: Any) -> bool:
        """In no transaction."""
        return not driver.in_transaction

    def is_broken(self, driver: Any) -> bool:
        """Never: there is no server."""
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
    if name in {"mariadb", "mysql"}:
        return MariaDB()
    usable = "postgresql+psycopg://, mariadb+pymysql:// or sqlite:///"
    message = f"a ledger on {name} is not there yet in this version; use {usable}"
    raise ValueError(message)


def _first_line(error: DBAPIError) -> str:
    return next(iter(str(error.orig).splitlines()), "") or type(error.orig).__name__


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)
