"""What a user may give as a SQL ledger, and the engine and sessions that come of it."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from sqlalchemy import URL, Connection, Engine
from sqlalchemy.exc import SQLAlchemyError, UnboundExecutionError
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from effectonce.errors import LedgerUnavailable
from effectonce.stores import BORN_IN
from effectonce.stores.sql.bound import GUARDS_OWN
from effectonce.stores.sql.engines import check_engine, own_engine, shown


class Source:
    """An engine, found when it is first needed, and a way to make a body's session on one of its connections.

    After a fork the child gives up its parent's pooled connections without closing them. Which process an engine's
    pool belongs to is known by engine: a given one outlives this object, which a child makes anew. A given one may
    have been used before this library saw it, in the process that loaded the application.
    """

    _owners: ClassVar[WeakKeyDictionary[Engine, int]] = WeakKeyDictionary()
    _seen: tuple[Engine, int] | None = None
    """The engine that this process is known to own: each effect asks."""

    _name: str | None = None

    def __init__(self, given: Any, *, context: Callable[[], AbstractContextManager[Any]] = nullcontext) -> None:
        self._given = given
        self._context = context
        self.owned = isinstance(given, (str, URL))
        self.registry: scoped_session[Session] | None = given if isinstance(given, scoped_session) else None
        self._engine = self._known()
        if self._engine is not None:
            check_engine(self._engine)
            self._owners.setdefault(self._engine, os.getpid() if self.owned else BORN_IN)

    @property
    def engine(self) -> Engine:
        """The engine; raises LedgerUnavailable where only an application context could tell it."""
        engine, pid = self._engine, os.getpid()
        if engine is not None and (engine, pid) == self._seen:
            return engine
        if engine is None:
            engine = self._engine = self._asked()
        if self._owners.setdefault(engine, BORN_IN) != pid:
            engine.dispose(close=False)
            self._owners[engine] = pid
        self._seen = engine, pid
        return engine

    @property
    def name(self) -> str:
        """The URL without its password."""
        if self._name is None:
            if self._engine is None:
                return type(self._given).__name__
            self._name = shown(self._engine.url)
        return self._name

    def session(self, connection: Connection | Engine) -> Session:
        """A session whose commits are savepoints of *connection*'s transaction.

        What a sessionmaker binds to *other* engines stays there and commits by itself. One that routes by its own
        ``get_bind`` is held to this connection.
        """
        session = self._session(connection)
        session.info[GUARDS_OWN] = True
        return session

    def _session(self, connection: Connection | Engine) -> Session:
        if not isinstance(self._given, sessionmaker):
            return Session(bind=connection, join_transaction_mode="create_savepoint")
        binds = self._given.kw.get("binds") or {}
        others = {model: bind for model, bind in binds.items() if bind is not self.engine}
        session: Session = self._given(bind=connection, binds=others or None, join_transaction_mode="create_savepoint")
        if type(session).get_bind is not Session.get_bind:
            vars(session)["get_bind"] = lambda *_, **__: connection
        return session

    def own_session(self) -> Session:
        """A session as its user would make one: of the registry or sessionmaker, or plainly on the engine."""
        if isinstance(self._given, (sessionmaker, scoped_session)):
            made: Session = self._given()
            return made
        return Session(bind=self.engine)

    def _known(self) -> Engine | None:
        """The engine, where it can be told without asking a session for it."""
        given = self._given
        if isinstance(given, (str, URL)):
            return own_engine(given)
        if isinstance(given, Engine):
            return given
        if isinstance(given, (sessionmaker, scoped_session)):
            return _bound(getattr(self._maker, "kw", {}))
        message = f"a ledger is a URL, an Engine, a sessionmaker or a scoped_session, not {type(given).__name__}"
        raise TypeError(message)

    @property
    def _maker(self) -> Any:
        return self._given if self.registry is None else self.registry.session_factory

    def _asked(self) -> Engine:
        try:
            with self._context():
                bind = self._given().get_bind()
        except (SQLAlchemyError, RuntimeError) as error:
            reason = "its sessions tell their engine only inside the application's context"
            if isinstance(error, UnboundExecutionError):
                reason = "its sessions have no engine of their own: give sessionmaker(bind=engine)"
            raise LedgerUnavailable(ledger=self.name, reason=reason) from error
        engine: Engine = bind if isinstance(bind, Engine) else bind.engine
        try:
            check_engine(engine)
        except ValueError as error:
            raise LedgerUnavailable(ledger=self.name, reason=str(error)) from error
        return engine


def _bound(options: dict[str, Any]) -> Engine | None:
    """The engine that a sessionmaker's options name; ValueError when they name none that can be meant."""
    binds = {options["bind"]} if options.get("bind") else set((options.get("binds") or {}).values())
    if len(binds) > 1:
        message = "its sessions have several engines: give the one that holds the ledger"
        raise ValueError(message)
    if any(isinstance(bind, Connection) for bind in binds):
        message = "its sessions are bound to one connection: give sessionmaker(bind=engine)"
        raise ValueError(message)
    return binds.pop() if binds else None
