"""`SqlLedger`: entries in a SQL database.

Each method is a short transaction of its own; none holds a connection after it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State, admit, is_reentry, is_repeated
from effectonce.domain.following import Following
from effectonce.ports import Renewal, Work
from effectonce.ports.exchanges import ExchangeWork
from effectonce.stores.sql.dialects import CLAIM_WAIT
from effectonce.stores.sql.exchanges import SqlExchange
from effectonce.stores.sql.history import SqlHistory
from effectonce.stores.sql.keeping import Keeping
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.nested import NestedWork
from effectonce.stores.sql.outbox import SqlOutbox
from effectonce.stores.sql.reservations import SqlReservations
from effectonce.stores.sql.rows import (
    claim_values,
    entry_of,
    halves_of,
    held_values,
    holder_of,
    lock_of,
    message_values,
    micros,
    outcome_values,
    renewal_values,
)
from effectonce.stores.sql.schedule import SqlSchedule
from effectonce.stores.sql.sightings import SqlSightings
from effectonce.stores.sql.source import Source
from effectonce.stores.sql.steps import StepRecords
from effectonce.stores.sql.surveys import SqlSurvey
from effectonce.stores.sql.upgrading import Upgrading
from effectonce.stores.sql.work import SqlWork


class SqlLedger(Upgrading, StepRecords, Keeping, SqlReservations, SqlSightings):
    """A ledger in a SQL database; open it with `open`."""

    @classmethod
    def open(
        cls,
        source: Any,
        *,
        schema: str | None = None,
        create_schema: bool | None = None,
        context: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> "SqlLedger":
        """Make a ledger of a URL, an Engine, a sessionmaker or a scoped_session; connects to nothing.

        *context*: an application's, where a scoped_session needs one to tell its engine.

        *create_schema* None: missing tables are created at the first use of a SQLite URL, not elsewhere. Raises
        ValueError or TypeError for a source that cannot be used, ImportError for a driver that is not installed.
        """
        found = Source(source, context=context)
        on_sqlite = found.owned and found.engine.dialect.name == "sqlite"
        return cls(found, schema=schema, create=on_sqlite if create_schema is None else create_schema)

    @cached_property
    def schedule(self) -> SqlSchedule:
        """Terms and ticks, in the same database."""
        schema = self._tables.metadata.schema
        return SqlSchedule(self.source, schema=schema, create=self._create, outbox=lambda: self.outbox)

    @property
    def history(self) -> SqlHistory:
        """What was not ordinary; see `ports.history`."""
        return SqlHistory(self)

    @property
    def survey(self) -> SqlSurvey:
        """What it says about itself; see `ports.surveys`."""
        return SqlSurvey(self, schema=self._tables.metadata.schema)

    @property
    def outbox(self) -> SqlOutbox:
        """See `ports.TransactionalStore.outbox`."""
        return SqlOutbox(self)

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
        fence = self.dialect.fence_of(connection.execute(self.statements.insert, values))
        if fence is not None:
            return Granted(**_names(claim), fence=fence, takeover=False, deaths=0, attempts=1)
        entry, answer = self.meet_on(connection, claim)
        if entry is None or isinstance(answer, Refused) or is_repeated(entry, claim):
            return answer
        self._let_go(connection)
        taken = self.dialect.fence_of(
            connection.execute(
                self.statements.take,
                {
                    **values,
                    "deaths": answer.deaths,
                    "reentry": int(is_reentry(entry, claim)),
                    "old_fence": entry.fence,
                    "old_attempt": entry.attempt,
                    "old_state": int(entry.state),
                },
            )
        )
        if taken is not None:
            return replace(answer, fence=taken)
        _, answer = self.meet_on(connection, claim)
        return answer if isinstance(answer, Refused) else Refused(entry=None)

    def _let_go(self, connection: Connection) -> None:
        """Between reading an entry and taking it as it was read."""
        self.dialect.let_go(connection)

    def meet_on(self, connection: Connection, claim: Claim) -> tuple[Entry | None, Granted | Refused]:
        """The entry that stands where this claim could not be inserted, and what the domain says of the two.

        Somebody with an open transaction on the key is at work, whatever the lease says: neither taken over nor
        poisoned. So is one whose insert nobody sees yet.
        """
        row = connection.execute(self.statements.meet, {"digest": claim.digest, "lock": lock_of(claim.digest)}).first()
        if row is None:
            return None, Refused(entry=None)
        entry = entry_of(row)
        idle = entry.state is State.RELEASED or (entry.state is State.CLAIMED and entry.lease_left <= 0)
        if idle and not row.free:
            return entry, Refused(entry=None)
        return entry, admit(entry, claim, row.now)

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
        kept = self._settled(lambda connection: self._renew_on(connection, held)) if held else frozenset()
        crashpoints.crash_point("renew.after")
        return kept

    def _renew_on(self, connection: Connection, held: Sequence[Renewal]) -> frozenset[bytes]:
        renewals = renewal_values(held, lists=self.dialect.lists)
        answers = [connection.execute(self.statements.renew, values) for values in renewals]
        if self.statements.renewed is not None:
            answers = [connection.execute(self.statements.renewed, values) for values in renewals]
        return frozenset(bytes(attempt) for answer in answers for attempt in answer.scalars())

    def follow(self, entry: Entry, identity: bytes) -> Following:
        """See `ports.LedgerStore.follow`."""
        crashpoints.crash_point("follow.before")
        values = {**held_values(entry), "follower": identity}
        answer = self._settled(lambda connection: self._follow_on(connection, values))
        crashpoints.crash_point("follow.after")
        return answer

    def _follow_on(self, connection: Connection, values: dict[str, Any]) -> Following:
        if connection.execute(self.statements.follow, values).rowcount == 1:
            return Following.NEXT
        followed = connection.execute(self.statements.is_followed, values).first() is not None
        return Following.ANOTHER if followed else Following.MOVED

    def poison(self, entry: Entry, message: bytes) -> bool:
        """See `ports.LedgerStore.poison`."""

        def poison(connection: Connection) -> bool:
            values = {**held_values(entry), "seen": int(entry.state), "lock": lock_of(entry.digest)}
            if not self._won(connection, self.statements.poison, values):
                return False
            connection.execute(self.statements.hold, message_values(entry.digest, message))
            return True

        return self._settled(poison)

    def hold(self, digest: bytes, message: bytes) -> None:
        """See `ports.LedgerStore.hold`."""
        self._write(self.statements.hold, message_values(digest, message))

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

    def holder(self, digest: bytes) -> str | None:
        """See `ports.TransactionalStore.holder`."""
        question = self.statements.holder
        if question is None:
            return None
        row = self._looked(lambda connection: connection.execute(question, halves_of(digest)).first())
        return None if row is None else holder_of(row)

    def rescue(self, limit: int) -> Sequence[Entry]:
        """See `ports.LedgerStore.rescue`."""
        freed = self._settled(lambda connection: self._rescue_on(connection, limit))
        crashpoints.crash_point("rescue.after")
        return freed

    def _rescue_on(self, connection: Connection, limit: int) -> list[Entry]:
        overdue = [entry_of(row) for row in connection.execute(self.statements.overdue, {"limit": max(limit, 0)})]
        crashpoints.crash_point("rescue.before")
        return [
            entry for entry in overdue if connection.execute(self.statements.rescue, held_values(entry)).rowcount == 1
        ]

    def ping(self) -> None:
        """See `ports.LedgerStore.ping`."""
        _ = self.statements
        self._check_tables()

    def create_schema(self) -> None:
        """See `ports.LedgerStore.create_schema`."""
        self._create_tables()

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
    def nested(self, outer: Work, claim: Claim, *, granted: Granted | None, keep: float | None) -> Iterator[Work]:
        """See `ports.TransactionalStore.nested`."""
        work = NestedWork(self, claim, outer=outer, granted=granted, keep=keep)
        try:
            yield work
        finally:
            work.rollback()

    def exchange(self, claim: Claim | None, granted: Granted | None, *, sessions: Any = None) -> ExchangeWork:
        """See `ports.TransactionalStore.exchange`."""
        return SqlExchange(self, claim, granted, sessions=sessions)

    @property
    def shares_session(self) -> bool:
        """See `ports.TransactionalStore.shares_session`."""
        return self.source.registry is not None

    @contextmanager
    def unguarded(self) -> Iterator[Session]:
        """See `ports.TransactionalStore.unguarded`."""
        session = self.source.own_session()
        try:
            yield session
            session.commit()
        except BaseException:
            session.rollback()
            raise
        finally:
            if not self.shares_session:
                session.close()

    def has_ended(self, digest: bytes, attempt: bytes, state: State) -> bool | None:
        """Whether this attempt's outcome is committed; None while somebody still holds the key (rule 10)."""
        try:
            with self._transaction(wait=CLAIM_WAIT) as connection:
                if not connection.execute(self.statements.lock, {"lock": lock_of(digest), "digest": digest}).scalar():
                    return None
                entry, _ = self.entry_on(connection, digest)
                return entry is not None and entry.attempt == attempt and entry.state is state
        except Locked:
            return None

    def _won(self, connection: Connection, statement: Any, values: dict[str, Any]) -> bool:
        """Write one row, if nobody holds it."""
        try:
            return bool(connection.execute(statement, values).rowcount == 1)
        except DBAPIError as error:
            if self.dialect.at_once and self.dialect.is_busy(error):
                return False
            raise

    def _write(self, statement: Any, values: dict[str, Any]) -> bool:
        return self._settled(lambda connection: bool(connection.execute(statement, values).rowcount == 1))


def _names(claim: Claim) -> dict[str, bytes]:
    return {"digest": claim.digest, "attempt": claim.attempt}
