"""`SqlLedger`: entries in a SQL database.

Each method is a short transaction of its own; none holds a connection after it.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, NoSuchModuleError, SQLAlchemyError

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State, admit, is_reentry, is_repeated
from effectonce.errors import LedgerUnavailable, SchemaMissing
from effectonce.ports import Conflict, Renewal, Work
from effectonce.stores.sql.dialects import CLAIM_WAIT, dialect_of
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.forks import ForkGate
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.rows import claim_values, entry_of, held_values, lock_of, micros, outcome_values
from effectonce.stores.sql.source import Source
from effectonce.stores.sql.statements import Statements
from effectonce.stores.sql.tables import VERSION, tables
from effectonce.stores.sql.work import NestedWork, SqlWork

T = TypeVar("T")

_TURNS = 5
_BATCH = 300
_SETTLE_WAIT = 5.0
"""Seconds that a statement which must be written waits for SQLite's one writer."""


class SqlLedger:
    """A ledger in a SQL database; open it with `open`."""

    def __init__(self, source: Source, *, schema: str | None, create: bool) -> None:
        self.source = source
        self._tables = tables(schema)
        self._create = create
        self._statements: Statements | None = None
        self._gate = ForkGate()

    @classmethod
    def open(cls, source: Any, *, schema: str | None = None, create_schema: bool | None = None) -> "SqlLedger":
        """Make a ledger of a URL, an Engine, a sessionmaker or a scoped_session; connects to nothing.

        *create_schema* None: missing tables are created at the first use on SQLite, not elsewhere. Raises ValueError
        or TypeError for a source that cannot be used, ImportError for a driver that is not installed.
        """
        try:
            found = Source(source)
            if found.owned:
                dialect_of(found.engine.dialect.name)
        except NoSuchModuleError as error:
            message = f"no database driver of this name is known: {error}"
            raise ValueError(message) from error
        on_sqlite = found.owned and found.engine.dialect.name == "sqlite"
        return cls(found, schema=schema, create=on_sqlite if create_schema is None else create_schema)

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self.source.name

    @property
    def dialect(self) -> Any:
        """What is special about this database."""
        return dialect_of(self.source.engine.dialect.name)

    @property
    def statements(self) -> Statements:
        """The statements; the first use may create the tables."""
        if self._statements is None:
            self._statements = Statements(self.dialect, self._tables)
            if self._create:
                self._create_if_missing()
        return self._statements

    def _create_if_missing(self) -> None:
        """Look first: a new process does not wait for SQLite's one writer when there is nothing to create."""
        try:
            self.ping()
        except SchemaMissing:
            self.create_schema()

    def claim(self, claim: Claim) -> Granted | Refused:
        """See `ports.LedgerStore.claim`."""
        crashpoints.crash_point("claim.before")
        answer = self._again(lambda: self._claim(claim))
        crashpoints.crash_point("claim.after")
        if isinstance(answer, Granted) and answer.takeover:
            crashpoints.crash_point("takeover.after")
        return answer

    def _claim(self, claim: Claim) -> Granted | Refused:
        try:
            with self._transaction(wait=CLAIM_WAIT) as connection:
                return self._claim_on(connection, claim)
        except Locked:
            return Refused(entry=None)

    def _claim_on(self, connection: Connection, claim: Claim) -> Granted | Refused:
        values = claim_values(claim, state=State.CLAIMED)
        fence = connection.execute(self.statements.insert, values).scalar()
        if fence is not None:
            return Granted(**_names(claim), fence=fence, takeover=False, deaths=0, attempts=1)
        entry, now = self.entry_on(connection, claim.digest)
        if entry is None:
            return Refused(entry=None)
        answer = admit(entry, claim, now)
        if isinstance(answer, Refused) or is_repeated(entry, claim):
            return answer
        taken = connection.execute(
            self.statements.take,
            {
                **values,
                "deaths": answer.deaths,
                "reentry": int(is_reentry(entry, claim)),
                "old_fence": entry.fence,
                "old_attempt": entry.attempt,
                "old_state": int(entry.state),
            },
        ).scalar()
        if taken is not None:
            return replace(answer, fence=taken)
        later, _ = self.entry_on(connection, claim.digest)
        return Refused(entry=later)

    def complete(self, granted: Granted, outcome: Outcome) -> bool:
        """See `ports.LedgerStore.complete`."""
        crashpoints.crash_point("settle.before")
        done = self._write(self.statements.complete, {**outcome_values(granted, outcome), "inserted": 1})
        crashpoints.crash_point("settle.after")
        if done:
            return True
        entry = self.read(granted.digest)
        if entry is None or (entry.attempt, entry.fence) != (granted.attempt, granted.fence):
            return False
        return entry.state in {State.COMPLETED, State.FAILED}

    def release(self, granted: Granted, *, retries: int, reset: bool, keep: float | None) -> bool:
        """See `ports.LedgerStore.release`."""
        crashpoints.crash_point("release.before")
        values = {**held_values(granted), "retries": retries, "reset": int(reset), "keep_us": micros(keep)}
        done = self._write(self.statements.release, values)
        crashpoints.crash_point("release.after")
        return done

    def renew(self, held: Sequence[Renewal]) -> frozenset[bytes]:
        """See `ports.LedgerStore.renew`."""
        crashpoints.crash_point("renew.before")
        kept: set[bytes] = set()
        for at in range(0, len(held), _BATCH):
            kept |= self._renew(held[at : at + _BATCH])
        crashpoints.crash_point("renew.after")
        return frozenset(kept)

    def _renew(self, held: Sequence[Renewal]) -> set[bytes]:
        values: dict[str, Any] = {}
        terms, leases = [], []
        for at, each in enumerate(sorted(held, key=lambda renewal: renewal.digest)):
            values |= {f"d{at}": each.digest, f"f{at}": each.fence, f"a{at}": each.attempt}
            leases.append(f"when :d{at} then {round(each.lease * 1000)}")
            terms.append(f"(digest = :d{at} and fence = :f{at} and attempt = :a{at})")
        lease = f"case digest {' '.join(leases)} else lease_ms end"
        statement = text(self.statements.renew.format(held=" or ".join(terms), leases=lease))
        return self._settled(
            lambda connection: {bytes(attempt) for attempt in connection.execute(statement, values).scalars()}
        )

    def poison(self, entry: Entry, message: bytes) -> bool:
        """See `ports.LedgerStore.poison`."""

        def poison(connection: Connection) -> bool:
            values = {**held_values(entry), "seen": int(entry.state)}
            if connection.execute(self.statements.poison, values).rowcount != 1:
                return False
            connection.execute(self.statements.hold, {"digest": entry.digest, "message": message})
            return True

        return self._settled(poison)

    def hold(self, digest: bytes, message: bytes) -> None:
        """See `ports.LedgerStore.hold`."""
        self._write(self.statements.hold, {"digest": digest, "message": message})

    def held(self, digest: bytes) -> Sequence[bytes]:
        """See `ports.LedgerStore.held`."""
        values = {"digest": digest}
        return self._looked(
            lambda connection: [bytes(row) for row in connection.execute(self.statements.held, values).scalars()]
        )

    def mark_continued(self, digest: bytes, attempt: bytes) -> None:
        """See `ports.LedgerStore.mark_continued`."""
        crashpoints.crash_point("mark.before")
        self._write(self.statements.mark_continued, {"digest": digest, "attempt": attempt})
        crashpoints.crash_point("mark.after")

    def mark_unknown(self, digest: bytes, attempt: bytes) -> None:
        """See `ports.LedgerStore.mark_unknown`."""
        self._write(self.statements.mark_unknown, {"digest": digest, "attempt": attempt})

    def read(self, digest: bytes) -> Entry | None:
        """See `ports.LedgerStore.read`."""
        return self._looked(lambda connection: self.entry_on(connection, digest)[0])

    def entry_on(self, connection: Connection, digest: bytes) -> tuple[Entry | None, int]:
        """The entry as this connection sees it, and the database's clock."""
        row = connection.execute(self.statements.read, {"digest": digest}).first()
        return (None, 0) if row is None else (entry_of(row), row.now)

    def find(self, key: str) -> Sequence[Entry]:
        """See `ports.LedgerStore.find`."""
        try:
            digest = bytes.fromhex(key)
        except ValueError:
            digest = b""
        return self._entries(self.statements.find, {"key": key, "digest": digest})

    def entries(self, *, state: State | None, limit: int, after: bytes | None = None) -> Sequence[Entry]:
        """See `ports.LedgerStore.entries`."""
        values = {"state": int(state or 0), "after": after or b"", "limit": limit}
        return self._entries(self.statements.page, values)

    def counts(self) -> Mapping[State, int]:
        """See `ports.LedgerStore.counts`."""
        return self._looked(
            lambda connection: {State(state): number for state, number in connection.execute(self.statements.counts)}
        )

    def rescue(self, limit: int) -> Sequence[Entry]:
        """See `ports.LedgerStore.rescue`."""
        freed = self._settled(lambda connection: self._rescue_on(connection, limit))
        crashpoints.crash_point("rescue.after")
        return freed

    def _rescue_on(self, connection: Connection, limit: int) -> list[Entry]:
        rows = connection.execute(self.statements.overdue, {"limit": limit}).all()
        freed = []
        crashpoints.crash_point("rescue.before")
        for entry in map(entry_of, rows):
            values = {**held_values(entry), "lock": lock_of(entry.digest), "keep_us": micros(7 * 86400.0)}
            if connection.execute(self.statements.rescue, values).rowcount == 1:
                freed.append(entry)
        return freed

    def ping(self) -> None:
        """See `ports.LedgerStore.ping`."""
        version = self._looked(self._probe)
        if version is None or version < VERSION:
            raise SchemaMissing(ledger=self.name, reason=f"its version is {version}, and {VERSION} is needed")

    def _probe(self, connection: Connection) -> int | None:
        connection.execute(self.statements.probe)
        version: int | None = connection.execute(self.statements.version).scalar()
        return version

    def create_schema(self) -> None:
        """See `ports.LedgerStore.create_schema`."""
        if self._statements is None:
            self._statements = Statements(self.dialect, self._tables)
        with self._errors(), self.source.engine.connect() as connection:
            if self.dialect.name == "sqlite":
                connection.exec_driver_sql("pragma journal_mode = wal")
                connection.rollback()
            with connection.begin():
                self.dialect.begin(connection, wait=_SETTLE_WAIT)
                self._tables.metadata.create_all(connection)
                meta = self._tables.meta
                if connection.execute(self._statements.version).scalar() is None:
                    connection.execute(meta.insert().values(version=VERSION))

    def close(self) -> None:
        """See `ports.LedgerStore.close`."""
        if self.source.owned:
            self.source.engine.dispose()

    @contextmanager
    def work(self, claim: Claim, *, granted: Granted | None, allow_escape: bool, keep: float | None) -> Iterator[Work]:
        """See `ports.TransactionalStore.work`."""
        work = SqlWork(self, claim, granted=granted, allow_escape=allow_escape, keep=keep)
        try:
            yield work
        finally:
            work.rollback()

    @contextmanager
    def nested(self, outer: Work, claim: Claim, *, keep: float | None) -> Iterator[Work]:
        """See `ports.TransactionalStore.nested`."""
        work = NestedWork(self, claim, outer=outer, keep=keep)
        try:
            yield work
        finally:
            work.rollback()

    def has_ended(self, digest: bytes, attempt: bytes, state: State) -> bool | None:
        """Whether this attempt's outcome is committed; None while somebody still holds the key (rule 10)."""
        try:
            with self._transaction(wait=CLAIM_WAIT) as connection:
                if not connection.execute(self.statements.lock, {"lock": lock_of(digest)}).scalar():
                    return None
                entry, _ = self.entry_on(connection, digest)
                return entry is not None and entry.attempt == attempt and entry.state is state
        except Locked:
            return None

    def is_conflict(self, error: BaseException) -> bool:
        """See `ports.TransactionalStore.is_conflict`."""
        return isinstance(error, DBAPIError) and bool(self.dialect.is_conflict(error))

    def is_lost(self, error: BaseException | None) -> bool:
        """See `ports.TransactionalStore.is_lost`."""
        return isinstance(error, DBAPIError) and error.connection_invalidated

    def _entries(self, statement: Any, values: dict[str, Any]) -> list[Entry]:
        return self._looked(lambda connection: [entry_of(row) for row in connection.execute(statement, values)])

    def _write(self, statement: Any, values: dict[str, Any]) -> bool:
        return self._settled(lambda connection: bool(connection.execute(statement, values).rowcount == 1))

    def _settled(self, step: Callable[[Connection], T]) -> T:
        def settle() -> T:
            with self._settling() as connection:
                return step(connection)

        return self._again(settle)

    def _looked(self, look: Callable[[Connection], T]) -> T:
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
            with self._transaction(wait=_SETTLE_WAIT) as connection:
                yield connection
        except Locked as error:
            raise LedgerUnavailable(ledger=self.name, reason="another writer held it for too long") from error

    @contextmanager
    def _transaction(self, *, wait: float) -> Iterator[Connection]:
        _ = self.statements
        with self._outside_forks(), self._errors(), self._begun() as connection:
            self.dialect.begin(connection, wait=wait)
            yield connection

    @contextmanager
    def _begun(self) -> Iterator[Connection]:
        with self.source.engine.connect() as connection, exempt(), connection.begin():
            yield connection

    def _outside_forks(self) -> AbstractContextManager[None]:
        return self._gate.passing() if self.dialect.name == "sqlite" else nullcontext()

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        _ = self.statements
        with self._outside_forks(), self._errors(), self.source.engine.connect() as connection:
            yield connection
            connection.rollback()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say in our words what the database says; never with its parameters."""
        try:
            yield
        except DBAPIError as error:
            raise self.translated(error) from error
        except SQLAlchemyError as error:
            raise LedgerUnavailable(ledger=self.name, reason=type(error).__name__) from error

    def translated(self, error: DBAPIError) -> Exception:
        """What an error of a statement of ours means."""
        if self.dialect.is_busy(error):
            return Locked()
        if self.dialect.is_conflict(error):
            return Conflict()
        if self.dialect.is_schema(error):
            return SchemaMissing(ledger=self.name, reason="a table or column is missing")
        return LedgerUnavailable(ledger=self.name, reason=type(error.orig).__name__)


def _names(claim: Claim) -> dict[str, bytes]:
    return {"digest": claim.digest, "attempt": claim.attempt}
