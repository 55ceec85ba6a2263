"""How a body may not leave its transaction, and how we notice.

The entry commits with the work, so a body that commits, rolls back or closes the transaction itself would tear them
apart. A watch listens on the body's own connection and session and vetoes: the error is raised where the escape is
tried, and again at the end if the body swallowed it. A commit on *another* connection to the same database from
inside the body is vetoed too: its rows would stay when the body is rolled back; what Celery's own backend or transport
writes there is not the body's work. What no event shows, such as a driver's own commit, is told by the driver's
transaction status at the next statement or at the end.

An error in SQLAlchemy's commit event leaves the driver's transaction open while the `Connection` thinks it is over; so
after a veto the connection is always invalidated, never given back to its pool.
"""

import ipaddress
import os
import re
import sys
from contextvars import ContextVar
from typing import Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import Session

from effectonce.errors import TransactionEscaped
from effectonce.stores.sql.dialects import Dialect

ENDED: Final = "it ended the transaction through the driver; the effect is unknown now"

_COMMENTS: Final = r"[\s;]*(?:/\*.*?\*/[\s;]*|--[^\n]*\n[\s;]*)*"
ENDS: Final = re.compile(
    _COMMENTS + r"(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!.*\bto\b))\b",
    re.IGNORECASE | re.DOTALL,
)
_STARTS: Final = frozenset("cCeEaAbBsSpPrR/-; \t\r\n")
_CELERYS_OWN: Final = ("celery.backends.", "kombu.transport.")


class Watch:
    """Watches one body's transaction; *how* says the first escape that was tried."""

    def __init__(self, connection: Connection, key: str, dialect: Dialect, session: Session | None) -> None:
        self.connection = connection
        self.how: str | None = None
        self._key = key
        self.is_ours = False
        self._dialect = dialect
        setattr(connection, _WATCH, self)
        if session is not None:
            event.listen(session, "before_commit", self._on_session_commit)
            event.listen(session, "after_soft_rollback", self._on_session_rollback)

    def ours(self) -> "_ours":
        """A context: what is done inside is the guard's own."""
        return _ours(self)

    def body(self) -> "_watched_by":
        """A context: while it lasts, this thread is in the body."""
        return _watched_by(self)

    def error(self) -> TransactionEscaped:
        """The error that says how the body escaped."""
        return TransactionEscaped(key=self._key, how=self.how)

    def veto(self, how: str) -> None:
        """Remember and raise an escape."""
        if not self.is_ours:
            self.how = self.how or how
            raise self.error()

    def notice(self) -> None:
        """Raise an escape that no event showed: the transaction that a statement would be part of is over."""
        if not self.is_ours and self._dialect.has_left(self.connection.connection.dbapi_connection):
            self.veto(ENDED)

    def hear(self, statement: str) -> None:
        """Look at what the body is about to say to the database; raises an escape that it is, or that came before."""
        self.notice()
        end = ENDS.match(statement) if statement[:1] in _STARTS else None
        if end is None and self._dialect.ends is not None:
            end = self._dialect.ends.match(statement)
        if end:
            self.veto(f"it executed {end[1].upper()}")

    def is_elsewhere(self, connection: Connection) -> bool:
        """Whether another connection goes to this body's database."""
        return connection is not self.connection and _place_of(connection) == _place_of(self.connection)

    def _on_session_commit(self, session: Session) -> None:
        if not session.in_nested_transaction():
            self.veto("it committed the registry's session")

    def _on_session_rollback(self, _session: Session, previous: Any) -> None:
        if previous.parent is None:
            self.veto("it rolled back the registry's session")


_WATCH: Final = "_effectonce_watch"
"""The attribute of a body's connection that holds its watch; the connection ends with the body."""

_LISTENED: Final = "_effectonce_listened"
"""The attribute of an engine that is listened to: cheaper to ask, for each effect, than SQLAlchemy's registry."""


def watch_over(engine: Engine) -> None:
    """Let an engine's new connections tell their watches; listening once an engine costs a body nothing."""
    if vars(engine).get(_LISTENED):
        return
    if not event.contains(engine, "commit", _on_commit):
        event.listen(engine, "commit", _on_commit)
        event.listen(engine, "rollback", _on_rollback)
        event.listen(engine, "before_cursor_execute", _on_statement)
    if not event.contains(Engine, "commit", _on_any_commit):
        event.listen(Engine, "commit", _on_any_commit)
    setattr(engine, _LISTENED, True)


def _on_commit(connection: Connection) -> None:
    watch: Watch | None = getattr(connection, _WATCH, None)
    if watch is not None:
        watch.veto("it committed the connection")


def _on_rollback(connection: Connection) -> None:
    watch: Watch | None = getattr(connection, _WATCH, None)
    if watch is not None:
        watch.veto("it rolled back or closed the connection")


def _on_statement(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
    watch: Watch | None = getattr(connection, _WATCH, None)
    if watch is not None:
        watch.hear(statement)


_watching: ContextVar[Watch | None] = ContextVar("effectonce_watch", default=None)


class _watched_by:  # noqa: N801 - a context, as `exempt` is
    """While it lasts, this thread's commits elsewhere are told to *watch*; None tells nobody.

    A class and no generator, as `_ours`: an effect enters a dozen of them.
    """

    __slots__ = ("_token", "_watch")

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._token = _watching.set(self._watch)

    def __exit__(self, *_: object) -> None:
        _watching.reset(self._token)


class _ours:  # noqa: N801 - as above
    """While it lasts, what is done on the connection of *watch* is the guard's own."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def __enter__(self) -> None:
        self._watch.is_ours = True

    def __exit__(self, *_: object) -> None:
        self._watch.is_ours = False


def exempt() -> _watched_by:
    """A context: what is done inside is the ledger's own, also when a body is running around it."""
    return _watched_by(None)


def current_watch() -> Watch | None:
    """The watch of the body that this thread is in."""
    return _watching.get()


def _on_any_commit(connection: Connection) -> None:
    watch = _watching.get()
    if watch is not None and watch.is_elsewhere(connection) and not is_celerys_own(sys._getframe()):  # noqa: SLF001 - the documented way to look at one's callers
        connection.invalidate()
        watch.veto("it committed on another connection to the ledger's database")


def is_celerys_own(frame: Any) -> bool:
    """Whether a result backend or a transport of Celery's is at work among the callers of *frame*."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(_CELERYS_OWN):
            return True
        frame = frame.f_back
    return False


def _place_of(connection: Connection) -> tuple[Any, ...]:
    """The database that a connection goes to, whatever its URL calls it."""
    driver = connection.connection.dbapi_connection
    name = "mariadb" if connection.dialect.name == "mysql" else connection.dialect.name
    if driver is None:
        return (name, None)
    if name == "sqlite":
        (_, _, file), *_ = driver.execute("pragma database_list").fetchall()
        return (name, os.path.realpath(file) if file else id(driver))
    seen = getattr(driver, "info", driver)
    url = connection.engine.url
    host = getattr(seen, "hostaddr", None) or getattr(seen, "host", None) or url.host or ""
    return (
        name,
        _machine(host),
        getattr(seen, "port", None) or url.port,
        getattr(seen, "dbname", None) or getattr(seen, "db", None) or url.database,
    )


def _machine(host: str) -> str:
    """All ways to say this machine are one."""
    try:
        return "localhost" if ipaddress.ip_address(host).is_loopback else host
    except ValueError:
        return "localhost" if not host or host.startswith(("/", "@")) else host
