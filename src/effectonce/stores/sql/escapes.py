"""How a body may not leave its transaction, and how we notice.

The entry commits with the work, so a body that commits, rolls back or closes the transaction itself would tear them
apart. A watch listens on the body's own connection and session and vetoes: the error is raised where the escape is
tried, and again at the end if the body swallowed it. A commit on *another* connection to the same database from
inside the body is vetoed too: its rows would stay when the body is rolled back. What no event shows, such as a
driver's own commit, is told at the end by the driver's transaction status.

An error in SQLAlchemy's commit event leaves the driver's transaction open while the `Connection` thinks it is over; so
after a veto the connection is always invalidated, never given back to its pool.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import Session

from effectonce.errors import TransactionEscaped

_COMMENTS: Final = r"\s*(?:/\*.*?\*/\s*|--[^\n]*\n\s*)*"
_ENDS: Final = re.compile(
    _COMMENTS + r"(?:commit|end|abort|begin|start\s+transaction|rollback(?!.*\bto\b))\b", re.IGNORECASE | re.DOTALL
)
_STARTS: Final = frozenset("cCeEaAbBsSrR/- \t\r\n")


class Watch:
    """Watches one body's transaction; *how* says the first escape that was tried."""

    def __init__(self, connection: Connection, key: str, session: Session | None) -> None:
        self.connection = connection
        self.how: str | None = None
        self._key = key
        self._ours = False
        self._database = _database_of(connection.engine)
        setattr(connection, _WATCH, self)
        if session is not None:
            event.listen(session, "before_commit", self._on_session_commit)
            event.listen(session, "after_soft_rollback", self._on_session_rollback)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """What is done inside is the guard's own."""
        self._ours = True
        try:
            yield
        finally:
            self._ours = False

    @contextmanager
    def body(self) -> Iterator[None]:
        """While it lasts, this thread is in the body."""
        token = _watching.set(self)
        try:
            yield
        finally:
            _watching.reset(token)

    def error(self) -> TransactionEscaped:
        """The error that says how the body escaped."""
        return TransactionEscaped(key=self._key, how=self.how)

    def veto(self, how: str) -> None:
        """Remember and raise an escape."""
        if not self._ours:
            self.how = self.how or how
            raise self.error()

    def is_elsewhere(self, connection: Connection) -> bool:
        """Whether another connection goes to this body's database."""
        return connection is not self.connection and _database_of(connection.engine) == self._database

    def _on_session_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():
            self.veto("it committed the registry's session")

    def _on_session_rollback(self, _session: Session, previous: Any) -> None:
        if previous.parent is None:
            self.veto("it rolled back the registry's session")


_WATCH: Final = "_effectonce_watch"
"""The attribute of a body's connection that holds its watch; the connection ends with the body."""


def watch_over(engine: Engine) -> None:
    """Let an engine's new connections tell their watches; listening once an engine costs a body nothing."""
    if not event.contains(engine, "commit", _on_commit):
        event.listen(engine, "commit", _on_commit)
        event.listen(engine, "rollback", _on_rollback)
        event.listen(engine, "before_cursor_execute", _on_statement)
    if not event.contains(Engine, "commit", _on_any_commit):
        event.listen(Engine, "commit", _on_any_commit)


def _on_commit(connection: Connection) -> None:
    watch: Watch | None = getattr(connection, _WATCH, None)
    if watch is not None:
        watch.veto("it committed the connection")


def _on_rollback(connection: Connection) -> None:
    watch: Watch | None = getattr(connection, _WATCH, None)
    if watch is not None:
        watch.veto("it rolled back or closed the connection")


def _on_statement(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
    if statement[:1] in _STARTS and _ENDS.match(statement):
        watch: Watch | None = getattr(connection, _WATCH, None)
        if watch is not None:
            watch.veto(f"it executed {statement.split(maxsplit=1)[0].upper()}")


_watching: ContextVar[Watch | None] = ContextVar("effectonce_watch", default=None)


@contextmanager
def exempt() -> Iterator[None]:
    """What is done inside is the ledger's own, also when a body is running around it."""
    token = _watching.set(None)
    try:
        yield
    finally:
        _watching.reset(token)


def current_watch() -> Watch | None:
    """The watch of the body that this thread is in."""
    return _watching.get()


def _on_any_commit(connection: Connection) -> None:
    watch = _watching.get()
    if watch is not None and watch.is_elsewhere(connection):
        connection.invalidate()
        watch.veto("it committed on another connection to the ledger's database")


def _database_of(engine: Engine) -> tuple[Any, ...]:
    url = engine.url
    if url.get_backend_name() == "sqlite" and not url.database:
        return (id(engine),)
    return (url.get_backend_name(), url.host or "localhost", url.port, url.database)
