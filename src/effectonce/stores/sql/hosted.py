"""A ledger in the database of a framework that owns its connections and its transactions.

A body's transaction is a block of the framework's own, on the connection that the body uses anyway: nothing in the
body changes. Everything else is a short transaction on connections of our own, made with the framework's settings;
but where the framework says that this thread's open transaction is the whole world (a test case that will be rolled
back), they are savepoints of it.

This module knows SQLAlchemy and no framework; `effectonce.contrib` has the frameworks, which know no SQLAlchemy.
"""

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effectonce.domain.claims import Claim, Granted
from effectonce.errors import SchemaMissing
from effectonce.ports import Work
from effectonce.ports.exchanges import ExchangeWork
from effectonce.stores.sql.engines import check_engine, level_of
from effectonce.stores.sql.hosted_exchange import HostedExchange
from effectonce.stores.sql.hosted_outbox import HostedOutbox
from effectonce.stores.sql.hosted_work import HostedWork
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.lent import lent_engine
from effectonce.stores.sql.source import Source
from effectonce.stores.sql.transactions import SETTLE_WAIT


class Block(Protocol):
    """One transaction of a framework on this thread's connection, or a savepoint of the one that is open."""

    is_nested: bool
    """Whether it is a savepoint; known after `begin`."""

    def begin(self) -> Any:
        """Begin it, and lend the driver's connection."""
        ...

    def watching(
        self, *, veto: Callable[[str], None] | None, notice: Callable[[str], None]
    ) -> AbstractContextManager[None]:
        """A context, the body's: *veto* raises at each way out of it, *notice* looks at each statement before it.

        Without a *veto* the body may leave as it likes.
        """
        ...

    def on_commit(self, call: Callable[[], None]) -> None:
        """Call after the commit of the outermost block, if it comes to that; what is raised there harms nothing."""
        ...

    def fault(self) -> str | None:
        """Why it cannot commit any more, after the body."""
        ...

    def is_closed(self) -> bool:
        """Whether the body closed the connection."""
        ...

    def commit(self) -> None:
        """Commit it, or release the savepoint; the framework's own errors come out."""
        ...

    def rollback(self) -> None:
        """Undo it, if it has not ended; raises nothing."""
        ...


class Host(Protocol):
    """A framework with a database."""

    name: str
    """Where the ledger is, as a user names it."""

    @property
    def drivername(self) -> str:
        """What SQLAlchemy calls the database and its driver; ValueError for one that cannot hold a ledger."""
        ...

    @property
    def hint(self) -> str:
        """How the tables are made."""
        ...

    @property
    def place(self) -> Hashable:
        """Changes when new connections go to another database than before, as in a test run."""
        ...

    @property
    def pools(self) -> bool:
        """Whether connections of ours may stay open while they are not used."""
        ...

    def connect(self) -> Any:
        """A new connection of the driver, ours alone."""
        ...

    def lend(self) -> Any:
        """This thread's connection of the driver."""
        ...

    def is_callers(self) -> bool:
        """Whether the block that is open is the caller's own, and not only the one that wraps a test case."""
        ...

    def is_open(self) -> bool:
        """Whether this thread has a block open."""
        ...

    def mark(self) -> Callable[[], bool]:
        """A question: whether the block or savepoint that is open now has not been undone."""
        ...

    def on_commit(self, call: Callable[[], None]) -> None:
        """Call after the commit of the outermost block, if it comes to that; what is raised there harms nothing."""
        ...

    def joins(self) -> bool:
        """Whether short statements must be part of what this thread's connection has open."""
        ...

    def block(self) -> Block:
        """A block of this thread's connection."""
        ...

    def unsuitable(self) -> str | None:
        """Why a body's transaction cannot be one of this host's; None when it can."""
        ...

    def meaning(self, error: BaseException) -> BaseException:
        """The driver's error behind one of the framework's; else the error itself."""
        ...

    def escape(self, error: BaseException) -> str | None:
        """How the body tried to leave its transaction, where *error* is the framework's word for that."""
        ...


class HostedSource(Source):
    """Engines over a host's database: one with connections of our own, one over those that are lent."""

    registry = None
    owned = False

    def __init__(self, host: Host) -> None:
        self.host = host
        self._given = None
        self._engine: Engine | None = None
        self._place: Hashable = None
        self._making = threading.Lock()
        self.lent = lent_engine(host.drivername, host.lend)

    @property
    def engine(self) -> Engine:
        """The engine of our own connections; another one when the host's database has become another."""
        if self._is_elsewhere():
            with self._making:
                if self._is_elsewhere():
                    if self._engine is not None:
                        self._engine.dispose()
                    self._engine, self._place = self._make(), self.host.place
        return super().engine

    def _is_elsewhere(self) -> bool:
        return self._engine is None or self.host.place != self._place

    def _make(self) -> Engine:
        host = self.host
        url = URL.create(host.drivername, database="-")
        options: dict[str, Any] = {"poolclass": NullPool}
        if host.pools:
            options = {"poolclass": QueuePool, "max_overflow": -1}
        engine = create_engine(url, creator=host.connect, **options, **level_of(url))
        check_engine(engine)
        return engine

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self.host.name

    def close(self) -> None:
        """Give all connections back."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()


class HostedLedger(SqlLedger):
    """A ledger in the database of a host."""

    source: HostedSource
    _changes_itself = False

    def __init__(self, host: Host, *, create: bool = False) -> None:
        super().__init__(HostedSource(host), schema=None, create=create)
        self.host = host

    @property
    def outbox(self) -> HostedOutbox:
        """See `ports.TransactionalStore.outbox`."""
        return HostedOutbox(self)

    def close(self) -> None:
        """See `ports.LedgerStore.close`."""
        self.source.close()

    def is_conflict(self, error: BaseException) -> bool:
        """See `ports.TransactionalStore.is_conflict`."""
        return super().is_conflict(self.driver_error(error))

    def is_lost(self, error: BaseException | None) -> bool:
        """See `ports.TransactionalStore.is_lost`."""
        return error is not None and super().is_lost(self.driver_error(error))

    def driver_error(self, error: BaseException) -> BaseException:
        """An error of the host's database as SQLAlchemy would have told it; else the error itself."""
        if isinstance(error, DBAPIError):
            return error
        dialect = self.source.lent.dialect
        cause = self.host.meaning(error)
        if isinstance(cause, dialect.loaded_dbapi.Error):
            return DBAPIError(None, None, cause, connection_invalidated=False)
        return error

    def _check_tables(self) -> None:
        try:
            super()._check_tables()
        except SchemaMissing as error:
            raise SchemaMissing(ledger=self.name, reason=f"{error.reason}; {self.host.hint}") from error

    @contextmanager
    def work(self, claim: Claim, *, granted: Granted | None, allow_escape: bool, keep: float | None) -> Iterator[Work]:
        """See `ports.TransactionalStore.work`."""
        work = HostedWork(self, claim, granted=granted, allow_escape=allow_escape, keep=keep)
        try:
            yield work
        finally:
            work.rollback()

    @contextmanager
    def unguarded(self) -> Iterator[Session]:
        """See `ports.TransactionalStore.unguarded`: beside what the body does by the host's own means."""
        with self._unchecked_transaction(wait=SETTLE_WAIT) as connection, self.source.session(connection) as session:
            yield session
            session.commit()

    @contextmanager
    def nested(self, outer: Work, claim: Claim, *, granted: Granted | None, keep: float | None) -> Iterator[Work]:
        """See `ports.TransactionalStore.nested`: a block of the host inside a block is a savepoint by itself."""
        assert isinstance(outer, HostedWork)  # noqa: S101 - the guard has looked
        with self.work(claim, granted=granted, allow_escape=outer.allows_escape, keep=keep) as work:
            yield work

    def exchange(self, claim: Claim | None, granted: Granted | None, *, sessions: Any = None) -> ExchangeWork:
        """See `ports.TransactionalStore.exchange`."""
        assert claim is not None, "the host's own transaction needs none of ours"  # noqa: S101 - a mistake of ours
        assert granted is not None, "a claim was granted before it is used"  # noqa: S101 - a mistake of ours
        del sessions
        return HostedExchange(self, claim, granted)

    def _let_go(self, connection: Connection) -> None:
        """Nothing where the transaction is the host's."""
        if not self.host.joins():
            super()._let_go(connection)

    @contextmanager
    def _unchecked_transaction(self, *, wait: float) -> Iterator[Connection]:
        if not self.host.joins():
            with super()._unchecked_transaction(wait=wait) as connection:
                yield connection
            return
        with self.errors(), self.joined() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        if not self.host.joins():
            with super()._reading() as connection:
                yield connection
            return
        with self.errors(), self.joined() as connection:
            yield connection

    @contextmanager
    def joined(self) -> Iterator[Connection]:
        """A savepoint of what is open, so that a failed statement does not take the rest along."""
        block = self.host.block()
        try:
            block.begin()
            with self.source.lent.connect() as connection:
                yield connection
            block.commit()
        except Exception as error:
            told = self.driver_error(error)
            if told is not error:
                raise told from error
            raise
        finally:
            block.rollback()
