"""MariaDB through PyMySQL: a row's own lock is the try-lock, asked for without waiting.

The first `insert` of an entry holds its row until the transaction ends, so another one is told "busy" at once
(error 1205 under ``innodb_lock_wait_timeout=0``). What is read under such a lock is read with a lock itself: a plain
read may show an old snapshot.

Two things happen here without a word, and both would tear work and entry apart. A deadlock rolls the *whole*
transaction back, and a body that catches the error goes on in a new one, without its entry: so the last statement of
a body's transaction is always one that must find the entry (``tests/integration/sql/test_mariadb.py``). And a
statement that changes a table's definition commits: it is vetoed like ``COMMIT``.
"""

import math
import re
from typing import Any, Final, Literal

from sqlalchemy import Connection, event
from sqlalchemy.engine.interfaces import ExceptionContext
from sqlalchemy.exc import DBAPIError

OURS: Final = "effectonce_ours"
"""The execution option of an engine of ours, whose connections are at READ COMMITTED from their start."""

OLDEST: Final = (10, 6)
"""The first version with SKIP LOCKED and JSON_TABLE."""

_SILENCE: Final = "effectonce_silence"
_LOST: Final = "_effectonce_lost"
_IN_TRANSACTION: Final = 1
_COMMENTS: Final = r"[\s;]*(?:/\*.*?\*/[\s;]*|(?:--|#)[^\n]*\n[\s;]*)*"
_SOME_TEMPORARY: Final = r"\s+(?:or\s+replace\s+)?temporary\b"


class MariaDB:
    """MariaDB 10.6 and newer."""

    name = "mariadb"
    clock = "timestampdiff(microsecond, '1970-01-01', utc_timestamp(6))"
    moment = clock
    lock = ":lock is not null"
    lock_of_row = "digest is not null"
    mortal = "1 = 1"
    holder: str | None = None
    share = "lock in share mode"
    key = "`key`"
    by_key = " force index (primary)"
    by_due = " force index (effectonce_outbox_due)"
    lists: Literal["arrays", "json", "none"] = "json"
    at_once = "set statement innodb_lock_wait_timeout=0 for "
    soon = "set statement innodb_lock_wait_timeout=5 for "
    shared = " lock in share mode nowait"
    skip_locked = " for update skip locked"
    returning_fence = ""
    loses_quietly = True
    ends: re.Pattern[str] | None = re.compile(
        _COMMENTS
        + rf"(alter|create(?!{_SOME_TEMPORARY})|drop(?!{_SOME_TEMPORARY})|truncate|rename|grant|revoke|lock\s+tables?|"
        r"unlock|analyze|optimize|repair|flush|install|uninstall|set\s+(?:session\s+|@@(?:session\.)?)?autocommit)\b",
        re.IGNORECASE | re.DOTALL,
    )
    _BUSY = 1205
    _CONFLICTS = frozenset({1213, 1020, 1614})
    _SCHEMA = frozenset({1146, 1054, 1049})
    _CUTS = frozenset({1053, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2055})
    _NOT_LET_IN = frozenset({1040, 1044, 1045, 1130, 1203})

    def new_fence(self, expression: str) -> str:
        """Have the answer to the statement tell the value: there is no ``update ... returning``."""
        return f"last_insert_id({expression})"

    def fence_of(self, result: Any) -> int | None:
        """The driver's last id, which stands for nothing when no row was written."""
        return int(result.lastrowid) if result.rowcount == 1 else None

    def is_mine(self, result: Any) -> bool:
        """The row was there to be locked; the driver counts rows that are found, not those that are changed."""
        return bool(result.rowcount == 1)

    def insert_new(self, into: str, columns: str, values: str, *, unique: str) -> str:
        """Without an error for a row that stands; *unique* is not named here."""
        del unique
        return f"insert ignore into {into} ({columns}) {values}"

    def begin(self, connection: Connection, *, wait: float) -> None:
        """Nothing: the server begins with the first statement. From here on a lost connection is marked."""
        del wait
        if not event.contains(connection.engine, "handle_error", _mark_lost):
            event.listen(connection.engine, "handle_error", _mark_lost)

    def limit_silence(self, connection: Connection, seconds: float | None) -> None:
        """One more statement when a connection changes from tasks with one limit to tasks with another.

        A user's connection is left as it is: the limit would stay on it.
        """
        if not connection.get_execution_options().get(OURS):
            return
        limit = "default" if seconds is None else str(max(1, math.ceil(seconds)))
        if connection.info.get(_SILENCE, "default") != limit:
            connection.exec_driver_sql(f"set session idle_transaction_timeout = {limit}")
            connection.info[_SILENCE] = limit

    def see_commits(self, connection: Connection) -> None:
        """READ COMMITTED for the transaction that begins here: others would lock the gaps between rows."""
        if self.is_autocommit(connection.connection.dbapi_connection):
            connection.execution_options(isolation_level="READ COMMITTED")
        elif not connection.get_execution_options().get(OURS):
            connection.exec_driver_sql("set transaction isolation level read committed")

    def read_past(self, connection: Connection) -> None:
        """READ COMMITTED: a plain read at SERIALIZABLE would wait for whoever holds a row."""
        if not connection.get_execution_options().get(OURS):
            connection.exec_driver_sql("set transaction isolation level read committed")

    def let_go(self, connection: Connection) -> None:
        """End the transaction, which has written nothing: two that share the row would refuse each other."""
        connection.exec_driver_sql("commit")

    def check_server(self, connection: Connection) -> str | None:
        """Why this server cannot hold a ledger, or None."""
        found = str(connection.exec_driver_sql("select version()").scalar())
        numbers = re.findall(r"\d+", found.removeprefix("5.5.5-"))  # what old replicas had to be told first
        version = ".".join(numbers[:3])
        if "mariadb" not in found.lower():
            return f"it is MySQL {version}, which is not there yet; MariaDB 10.6 and newer can hold a ledger"
        if tuple(map(int, numbers[:2])) < OLDEST:
            return f"it is MariaDB {version}, and 10.6 is needed"
        return None

    def let_readers_in(self, connection: Connection) -> None:
        """Nothing: they never wait for each other."""

    def reason(self, error: DBAPIError) -> str:
        """The words of a server that lacks something or cannot be reached; of other errors the name and the number."""
        code = _code(error)
        if self.is_schema(error) or code is None or code >= 2000 or code in self._NOT_LET_IN:  # noqa: PLR2004 - the client's own
            return next(iter(str(error.orig).splitlines()), "") or type(error.orig).__name__
        return f"{type(error.orig).__name__} ({code})"

    def is_busy(self, error: DBAPIError) -> bool:
        """Lock wait timeout, also one of 0 seconds."""
        return _code(error) == self._BUSY

    def is_conflict(self, error: DBAPIError) -> bool:
        """A deadlock, a row that changed since the snapshot, or a lock that a body waited for in vain."""
        return _code(error) in self._CONFLICTS or self.is_busy(error)

    def is_cut(self, error: DBAPIError) -> bool:
        """Killed, shut down or lost."""
        return _code(error) in self._CUTS

    def is_aborted(self, error: DBAPIError) -> bool:
        """Never: what fails is undone alone, or with all that came before it."""
        return error is None

    def is_schema(self, error: DBAPIError) -> bool:
        """No such table, column or database."""
        return _code(error) in self._SCHEMA

    def in_transaction(self, driver: Any) -> bool:
        """As the server said with its last answer."""
        return bool(driver.server_status & _IN_TRANSACTION)

    def has_failed(self, driver: Any) -> bool:
        """Never; see `is_aborted`."""
        return driver is None

    def has_left(self, driver: Any) -> bool:
        """In no transaction, as the server said with its last answer; it says nothing with an error."""
        return not self.in_transaction(driver)

    def is_broken(self, driver: Any) -> bool:
        """Lost while we used it, or closed, and not by us."""
        return hasattr(driver, _LOST) or (not driver.open and not driver._closed)  # noqa: SLF001 - no other way to tell

    def is_autocommit(self, driver: Any) -> bool:
        """As the server said with its last answer."""
        return bool(driver.get_autocommit())


def _mark_lost(context: ExceptionContext) -> None:
    """SQLAlchemy closes a connection that was lost, and then it looks like one that the body closed."""
    error, connection = context.sqlalchemy_exception, context.connection
    if connection is None or not isinstance(error, DBAPIError) or connection.closed or connection.invalidated:
        return
    if context.is_disconnect or MariaDB().is_cut(error):
        setattr(connection.connection.dbapi_connection, _LOST, True)


def _code(error: DBAPIError) -> int | None:
    arguments = getattr(error.orig, "args", ())
    return arguments[0] if arguments and isinstance(arguments[0], int) else None
