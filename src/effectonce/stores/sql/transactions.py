"""The short transactions of a ledger: how they begin, what their errors mean, and when they are run again.

Each takes a connection and gives it back. An error of the database is told in our words, never with its parameters.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from effectonce.errors import LedgerUnavailable, SchemaMissing
from effectonce.ports import Conflict
from effectonce.stores.sql.dialects import dialect_of
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.forks import ForkGate
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.mariadb_statements import MariaDBStatements
from effectonce.stores.sql.schema import create_tables
from effectonce.stores.sql.source import Source
from effectonce.stores.sql.statements import Statements
from effectonce.stores.sql.tables import VERSION, Tables, tables

T = TypeVar("T")

_TURNS = 5
SETTLE_WAIT = 5.0
"""Seconds that a statement which must be written waits for SQLite's one writer."""


class ShortTransactions:
    """What `SqlLedger` stands on: its source, its statements, and ways to run them."""

    def __init__(self, source: Source, *, schema: str | None, create: bool) -> None:
        self.source = source
        self._tables = tables(schema)
        self._create = create
        self._made: Statements | None = None
        self._ready = False
        self.stores_messages = True
        self._first_use = threading.RLock()
        self.gate = ForkGate()

    @property
    def tables(self) -> Tables:
        """The tables as they should be."""
        return self._tables

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self.source.name

    @cached_property
    def dialect(self) -> Any:
        """What is special about this database; found once, where its engine can be told."""
        return dialect_of(self.source.engine.dialect.name)

    @property
    def statements(self) -> Statements:
        """The statements, for tables that were found to be usable; the first use may create them."""
        if not self._ready:
            with self.gate.passing(), self._first_use:
                if not self._ready:
                    self._get_ready()
        return self._unchecked

    @property
    def _unchecked(self) -> Statements:
        if self._made is None:
            quote = self.source.engine.dialect.identifier_preparer.format_table
            kind = MariaDBStatements if self.dialect.name == "mariadb" else Statements
            self._made = kind(self.dialect, self._tables, quote)
        return self._made

    def _get_ready(self) -> None:
        """Look first: a new process does not wait for SQLite's one writer when there is nothing to create."""
        try:
            self._check_tables()
        except SchemaMissing:
            if not self._create:
                raise
            self._create_tables()
        self._ready = True

    def _check_tables(self) -> None:
        def look() -> int | None:
            with self._reading() as connection:
                unfit = self.dialect.check_server(connection)
                if unfit:
                    raise LedgerUnavailable(ledger=self.name, reason=unfit)
                version: int | None = connection.execute(self._unchecked.check).scalar()
                return version

        version = self._again(look)
        if version is None or version < VERSION:
            raise SchemaMissing(ledger=self.name, reason=f"its version is {version}, and {VERSION} is needed")

    def _create_tables(self) -> None:
        def create() -> None:
            with self._unchecked_transaction(wait=SETTLE_WAIT) as connection:
                create_tables(connection, self._tables, self.dialect)

        if self.source.owned and self.dialect.name == "sqlite":
            self._again(self._let_readers_in)
        try:
            self._again(create)
        except Locked as error:
            raise self._held_too_long() from error

    def _let_readers_in(self) -> None:
        """Two processes may want it at once, and SQLite does not let one of them wait."""
        try:
            with self._outside_forks(), self.errors(), self._connected() as connection:
                self.dialect.let_readers_in(connection)
        except Locked as error:
            raise Conflict from error

    def is_conflict(self, error: BaseException) -> bool:
        """See `ports.TransactionalStore.is_conflict`."""
        return isinstance(error, DBAPIError) and bool(self.dialect.is_conflict(error))

    def is_lost(self, error: BaseException | None) -> bool:
        """See `ports.TransactionalStore.is_lost`."""
        return isinstance(error, DBAPIError) and (error.connection_invalidated or bool(self.dialect.is_cut(error)))

    def settle(self, step: Callable[[Connection], T]) -> T:
        """Run *step* in a short transaction that must be written; once more where it lost against another."""
        return self._settled(step)

    def look(self, look: Callable[[Connection], T]) -> T:
        """Run *look* on a connection that writes nothing."""
        return self._looked(look)

    def _settled(self, step: Callable[[Connection], T]) -> T:
        def settle() -> T:
            with self._settling() as connection:
                return step(connection)

        return self._again(settle)

    def _looked(self, look: Callable[[Connection], T]) -> T:
        _ = self.statements

        def read() -> T:
            with self._reading() as connection:
                return look(connection)

        return self._again(read)

    def _again(self, step: Callable[[], T]) -> T:
        """Run a short transaction again: a few times when it lost against another (rule 13), once when it was cut.

        A connection that idled while a firewall forgot it, or the server was restarted, breaks at its first use. The
        server may have committed all the same: whoever comes here answers a second asking as the first
        (``tests/networks/test_claims.py``).
        """
        was_cut = False
        for turn in range(_TURNS):
            try:
                return step()
            except Conflict:
                time.sleep(random.uniform(0, 0.01 * 2**turn))  # noqa: S311 - jitter, not a secret
            except LedgerUnavailable as error:
                if was_cut or not self.is_lost(error.__cause__):
                    raise
                was_cut = True
        raise LedgerUnavailable(ledger=self.name, reason="its transactions keep losing against others")

    @contextmanager
    def _settling(self) -> Iterator[Connection]:
        try:
            with self._transaction(wait=SETTLE_WAIT) as connection:
                yield connection
        except Locked as error:
            raise self._held_too_long() from error

    def _held_too_long(self) -> LedgerUnavailable:
        return LedgerUnavailable(ledger=self.name, reason="another writer held it for too long")

    @contextmanager
    def _transaction(self, *, wait: float) -> Iterator[Connection]:
        _ = self.statements
        with self._unchecked_transaction(wait=wait) as connection:
            yield connection

    @contextmanager
    def _unchecked_transaction(self, *, wait: float) -> Iterator[Connection]:
        with self._outside_forks(), self.errors(), self._begun() as connection:
            self.dialect.begin(connection, wait=wait)
            yield connection

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        with self._connected() as connection:
            self.dialect.see_commits(connection)
            with exempt(), connection.get_transaction() or connection.begin():
                yield connection

    def _connected(self) -> Connection:
        """Connect while nobody forks: a child that is born in the middle inherits the driver's locks, locked."""
        with self.gate.passing():
            return self.source.engine.connect()

    def _outside_forks(self) -> AbstractContextManager[None]:
        """See `forks`: always on SQLite; elsewhere while the driver and SQLAlchemy get to know the database."""
        return nullcontext() if self._ready and self.dialect.name != "sqlite" else self.gate.passing()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        with self._outside_forks(), self.errors(), self._connected() as connection:
            self.dialect.read_past(connection)
            yield connection
            connection.rollback()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Say in our words what the database says, never with its parameters."""
        try:
            yield
        except DBAPIError as error:
            raise self.translated(error) from error
        except SQLAlchemyError as error:
            raise LedgerUnavailable(ledger=self.name, reason=type(error).__name__) from error

    def translated(self, error: DBAPIError) -> Exception:
        """What an error of a statement of ours means; its parameters are hidden from whoever prints it."""
        error.hide_parameters = True
        if self.dialect.is_busy(error):
            return Locked()
        if self.dialect.is_conflict(error):
            return Conflict()
        if self.dialect.is_schema(error):
            return SchemaMissing(ledger=self.name, reason=self.dialect.reason(error))
        return LedgerUnavailable(ledger=self.name, reason=self.dialect.reason(error))
