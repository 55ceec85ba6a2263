"""What the ledger needs to know of a kind of database: pieces of SQL, what errors mean, what a driver tells."""

import re
from typing import Any, Literal, Protocol

from sqlalchemy.exc import DBAPIError


class Dialect(Protocol):
    """One kind of database."""

    name: str
    clock: str
    """SQL: the database's clock in microseconds, moving inside a transaction."""

    moment: str
    """SQL: the same as the statement began, so that an index can be searched by it."""

    lock: str
    """SQL: true when the try-lock of ``:lock`` is ours until the transaction ends; never waits."""

    lock_of_row: str
    """SQL: the same for the effect of the row with this ``digest``."""

    mortal: str
    """SQL: true; from here on the server ends a transaction whose machine is gone (hole H10) or frozen.

    ``:silence`` is the longest silence that is no freeze, in milliseconds, or null.
    """

    holder: str | None
    """SQL: who holds the try-lock with the halves ``:high`` and ``:low``; None where it cannot be told."""

    share: str
    """SQL: ends a select of a row that nobody may change until this transaction ends; waits for who is changing it."""

    key: str
    """SQL: the column ``key``, which is a reserved word in some databases."""

    by_key: str
    """SQL behind the name of a table that is updated: find the row by its primary key, whatever the statistics say."""

    by_due: str
    """SQL behind the alias of the outbox: take what is due in the order of an index, and sort nothing."""

    lists: Literal["arrays", "json", "none"]
    """How one statement is given a list of rows."""

    at_once: str
    """SQL before a statement: do not wait for a row that somebody holds."""

    soon: str
    """SQL before a statement: wait for a row as long as a short statement may need it."""

    shared: str
    """SQL after a select of one entry: read what is committed, and refuse what somebody is writing."""

    skip_locked: str
    """SQL after a select: lock its rows, and pass over those that somebody holds."""

    returning_fence: str
    """SQL after a statement that writes one entry: give its fence back."""

    loses_quietly: bool
    """Whether the server may roll a body's transaction back and let the body go on in a new one."""

    ends: re.Pattern[str] | None
    """What ends a transaction besides the words of the SQL standard."""

    def new_fence(self, expression: str) -> str:
        """SQL: the value of a fence that is written, told to `fence_of`."""
        ...

    def fence_of(self, result: Any) -> int | None:
        """The fence that an insert or a take wrote; None when it wrote none."""
        ...

    def is_mine(self, result: Any) -> bool:
        """Whether `Statements.resume` got the lock of a claim that still holds."""
        ...

    def insert_new(self, into: str, columns: str, values: str, *, unique: str) -> str:
        """SQL: insert what *values* selects, unless a row with the same *unique* columns stands."""
        ...

    def begin(self, connection: Any, *, wait: float) -> None:
        """Begin for writing, waiting at most *wait* seconds where the whole database is locked."""
        ...

    def limit_silence(self, connection: Any, seconds: float | None) -> None:
        """Do what `mortal` says where a statement cannot, on connections of our own; None is the server's own limit."""
        ...

    def see_commits(self, connection: Any) -> None:
        """Have each statement of a transaction that is about to begin see what was committed before it."""
        ...

    def read_past(self, connection: Any) -> None:
        """About to read without a lock: wait for nobody."""
        ...

    def let_go(self, connection: Any) -> None:
        """Between reading an entry and taking it as it was read: keep no lock that another taker would meet."""
        ...

    def check_server(self, connection: Any) -> str | None:
        """Why the server that answers cannot hold a ledger, or None."""
        ...

    def let_readers_in(self, connection: Any) -> None:
        """Have readers and the writer of a file not wait for each other; kept in the file."""
        ...

    def reason(self, error: DBAPIError) -> str:
        """What the database says, in a line, without values of rows or parameters."""
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

    def is_aborted(self, error: DBAPIError) -> bool:
        """An earlier statement failed, and the transaction can only be rolled back."""
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

    def has_left(self, driver: Any) -> bool:
        """Whether the driver's connection is in order, but in no transaction."""
        ...

    def is_broken(self, driver: Any) -> bool:
        """Whether the connection was lost."""
        ...

    def is_autocommit(self, driver: Any) -> bool:
        """Whether each statement would commit by itself."""
        ...
