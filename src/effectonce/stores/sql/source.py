"""What a user may give as a SQL ledger, and the engine and sessions that come of it."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError, UnboundExecutionError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from effectonce.errors import LedgerUnavailable

_KEEPALIVES = {"keepalives": 1, "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


class Source:
    """An engine, found when it is first needed, and a way to make a body's session on one of its connections.

    After a fork the child gives up its parent's pooled connections without closing them. Which process an engine's
    pool belongs to is known by engine: a given one outlives this object, which a child makes anew.
    """

    _owners: ClassVar[WeakKeyDictionary[Engine, int]] = WeakKeyDictionary()

    def __init__(self, given: Any, *, context: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        self._given = given
        self._context = context
        self.owned = isinstance(given, (str, URL))
        self.registry: scoped_session[Session] | None = given if isinstance(given, scoped_session) else None
        self._engine: Engine | None = None
        if self.owned:
            self._engine = _own_engine(given)
        elif not isinstance(given, (Engine, sessionmaker, scoped_session)):
            message = f"a ledger is a URL, an Engine, a sessionmaker or a scoped_session, not {type(given).__name__}"
            raise TypeError(message)

    @property
    def engine(self) -> Engine:
        """The engine; raises LedgerUnavailable where only an application context could tell it."""
        engine = self._engine
        if engine is None:
            engine = self._engine = self._found()
        pid = os.getpid()
        if self._owners.setdefault(engine, pid) != pid:
            engine.dispose(close=False)
            self._owners[engine] = pid
        return engine

    @property
    def name(self) -> str:
        """The URL without its password."""
        if self._engine is None and not isinstance(self._given, Engine):
            return type(self._given).__name__
        return self.engine.url.set(query={}).render_as_string(hide_password=True)

    def session(self, connection: Connection) -> Session:
        """A session whose commits are savepoints of *connection*'s transaction."""
        make: Callable[..., Session] = self._given if isinstance(self._given, sessionmaker) else Session
        return make(bind=connection, binds=None, join_transaction_mode="create_savepoint")

    def _found(self) -> Engine:
        if isinstance(self._given, Engine):
            return self._given
        maker = self._given.session_factory if self.registry is not None else self._given
        bound = getattr(maker, "kw", {}).get("bind")
        if isinstance(bound, Engine):
            return bound
        try:
            with self._context():
                bind = self._given().get_bind()
        except (SQLAlchemyError, RuntimeError) as error:
            reason = "its sessions tell their engine only inside the application's context"
            if isinstance(error, UnboundExecutionError):
                reason = "its sessions have no engine of their own: give sessionmaker(bind=engine)"
            raise LedgerUnavailable(ledger=self.name, reason=reason) from error
        return bind if isinstance(bind, Engine) else bind.engine


def _own_engine(given: str | URL) -> Engine:
    try:
        url = make_url(given)
    except ArgumentError as error:
        message = "it is no database URL; write postgresql+psycopg://user@host/database or sqlite:///file"
        raise ValueError(message) from error
    if url.get_backend_name() == "postgresql":
        return create_engine(url, connect_args=_connect_args(url))
    return create_engine(url)


def _connect_args(url: URL) -> dict[str, Any]:
    """No prepared statements (a pooler would mix them up), and keepalives that end a dead holder's lock (hole H10)."""
    if url.get_driver_name() != "psycopg":
        message = f"a ledger on PostgreSQL needs postgresql+psycopg://, not {url.drivername}://"
        raise ValueError(message)
    return {"prepare_threshold": None, "application_name": "effectonce", "connect_timeout": 5, **_KEEPALIVES}
