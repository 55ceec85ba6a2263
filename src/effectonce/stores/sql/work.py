"""The transaction of one `Transactional` body.

It begins with the claim and ends with the commit of the claim, the work and the outcome together. A crash anywhere
before the commit leaves nothing of it. A connection that breaks *at* the commit leaves a question, and `commit` asks
it: under the same try-lock, so that a server which is still committing is waited for (holes H14 and rule 10).
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, PendingRollbackError, SQLAlchemyError
from sqlalchemy.orm import Session

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Granted, Outcome, Refused, State
from effectonce.domain.outbox import Message, Stored
from effectonce.errors import LedgerUnavailable, LedgerUnsuitable, TransactionEscaped
from effectonce.ports import Conflict
from effectonce.stores.sql.asking import ask_how_it_ended
from effectonce.stores.sql.dialects import CLAIM_WAIT
from effectonce.stores.sql.escapes import ENDED, Watch, exempt, watch_over
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.outgoing import Outgoing, watch_savepoints
from effectonce.stores.sql.reservations import ReservingWork
from effectonce.stores.sql.rows import claim_values, held_values, lock_of, outcome_values, silence_values

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

CLOSED = "it closed or invalidated the connection"
FAILED = "a statement failed and was caught without a savepoint, so the database will not commit"
REMOVED = "it removed or closed the registry's session"


class SqlWork(ReservingWork):
    """The whole transaction of a body; see `ports.Work`."""

    _own_transaction = True

    def __init__(
        self, ledger: "SqlLedger", claim: Claim, *, granted: Granted | None, allow_escape: bool, keep: float | None
    ) -> None:
        self._ledger = ledger
        self._claim = claim
        self._committed = granted
        self._allow_escape = allow_escape
        self._keep = keep
        self._granted = granted
        self._outcome_state = State.COMPLETED
        self._connection: Connection | None = None
        self._session: Session | None = None
        self._callers: Session | None = None
        self._watch: Watch | None = None
        self._in_body = ExitStack()
        self._in_doubt = False
        self._driver: Any = None
        self._outgoing = Outgoing()

    @property
    def connection(self) -> Connection:
        """The connection of the transaction."""
        assert self._connection is not None, "the work was not entered"  # noqa: S101 - a mistake of ours
        return self._connection

    @property
    def is_broken(self) -> bool:
        """See `ports.Work.is_broken`."""
        return self._driver is not None and bool(self._ledger.dialect.is_broken(self._driver))

    @property
    def session(self) -> Session:
        """The session of the transaction, made when it is first wanted."""
        if self._session is None:
            self._session = self._ledger.source.session(self.connection)
        return self._session

    def send(self, message: Message) -> None:
        """See `ports.Work.send`."""
        self._outgoing.add(message, session=self._session)

    def hand_over(self, _dispatch: Callable[[Sequence[Stored]], None]) -> Sequence[Stored]:
        """See `ports.Work.hand_over`."""
        return self._outgoing.committed

    def enter(self) -> Granted | Refused:
        """See `ports.Work.enter`."""
        crashpoints.crash_point("claim.before")
        answer = self._enter()
        crashpoints.crash_point("claim.after")
        if isinstance(answer, Granted):
            self._granted = answer
            self._in_doubt = not self._allow_escape
            self._start_watch()
        return answer

    def _enter(self) -> Granted | Refused:
        """Begin; once more when a connection that had idled turns out to be cut: nothing was done on it yet."""
        try:
            return self._begin()
        except LedgerUnavailable as error:
            if not self._own_transaction or not self._ledger.is_lost(error.__cause__):
                raise
        self.rollback()
        return self._begin()

    def _begin(self) -> Granted | Refused:
        ledger = self._ledger
        try:
            with exempt():
                self._open()
                if self._own_transaction:
                    ledger.dialect.limit_silence(self.connection, self._claim.longest_silence)
                if self._committed is not None:
                    return self._lock_only(self._committed)
                return self._insert()
        except Locked:
            return Refused(entry=None)
        except DBAPIError as error:
            problem = ledger.translated(error)
            if isinstance(problem, Locked):
                return Refused(entry=None)
            if ledger.dialect.is_aborted(error):
                raise self._escaped(FAILED) from error
            raise problem from error
        except SQLAlchemyError as error:
            raise LedgerUnavailable(ledger=ledger.name, reason=type(error).__name__) from error

    def _open(self) -> None:
        ledger = self._ledger
        _ = ledger.statements
        if not self._allow_escape:
            watch_over(ledger.source.engine)
        watch_savepoints(ledger.source.engine)
        registry = ledger.source.registry
        if registry is not None:
            self._callers = registry.registry() if registry.registry.has() else None
            registry.registry.clear()
            self._session = registry()
        self._connect()

    def _connect(self) -> None:
        ledger, engine = self._ledger, self._ledger.source.engine
        has_begun = False
        if ledger.source.registry is None:
            self._connection = engine.connect()
            self._connection.begin()
        else:
            has_begun = self.session.in_transaction()
            self._connection = self.session.connection(bind_arguments={"bind": engine})
        self._driver = self._connection.connection.dbapi_connection
        if not has_begun:
            ledger.dialect.begin(self._connection, wait=CLAIM_WAIT)
        if ledger.dialect.is_autocommit(self._driver):
            facts = {"ledger": ledger.name, "policy": "Transactional", "task": self._claim.key}
            raise LedgerUnsuitable(**facts, reason="its engine commits each statement by itself (AUTOCOMMIT)")

    def _lock_only(self, granted: Granted) -> Granted | Refused:
        values = {**held_values(granted), "lock": lock_of(granted.digest), **self._silence}
        result = self.connection.execute(self._ledger.statements.resume, values)
        return granted if self._ledger.dialect.is_mine(result) else Refused(entry=None)

    def _insert(self) -> Granted | Refused:
        claim = self._claim
        values = {**claim_values(claim, state=State.COMPLETED, keep=self._keep), **self._silence}
        fence = self._ledger.dialect.fence_of(self.connection.execute(self._ledger.statements.begin, values))
        if fence is None:
            return self._met()
        return Granted(digest=claim.digest, attempt=claim.attempt, fence=fence, takeover=False, deaths=0, attempts=1)

    @property
    def _silence(self) -> dict[str, Any]:
        """How long this transaction may be silent; one that it is only a part of keeps what it was begun with."""
        return silence_values(self._claim.longest_silence if self._own_transaction else None)

    def _met(self) -> Refused:
        entry, answer = self._ledger.meet_on(self.connection, self._claim)
        return answer if isinstance(answer, Refused) else Refused(entry=entry)

    def _start_watch(self) -> None:
        if self._own_transaction:
            self._outgoing.follow_connection(self.connection)
        if not self._allow_escape:
            session = self._session if self._ledger.source.registry is not None else None
            self._watch = Watch(self.connection, self._claim.key, self._ledger.dialect, session)
            self._in_body.enter_context(self._watch.body())

    def finish(self, outcome: Outcome) -> bool:
        """See `ports.Work.finish`."""
        self._end_body()
        self._outgoing.store(self._ledger, self.connection, effect=self._claim.digest)
        self._outcome_state = outcome.state
        first = self._committed is None
        if (
            first
            and not self._may_be_gone
            and not self._ledger.dialect.loses_quietly
            and outcome.state is State.COMPLETED
            and outcome.result is None
            and outcome.kept
        ):
            return True
        crashpoints.crash_point("settle.before")
        granted = self._granted
        assert granted is not None, "the work was not entered"  # noqa: S101 - a mistake of ours
        inserted = int(State.COMPLETED if first else State.CLAIMED)
        done = self._execute(
            self._ledger.statements.complete, {**outcome_values(granted, outcome), "inserted": inserted}
        )
        if not done and self._may_be_gone:
            done = self._write_again(outcome)
        if not done and first and self._ledger.dialect.loses_quietly:
            raise Conflict
        crashpoints.crash_point("settle.after")
        return done

    @property
    def _may_be_gone(self) -> bool:
        """Whether a body that was allowed to end its transaction may have rolled the entry back."""
        return self._allow_escape and self._committed is None

    def _write_again(self, outcome: Outcome) -> bool:
        answer = self._insert()
        if isinstance(answer, Refused):
            return False
        values = {**outcome_values(answer, outcome), "inserted": int(State.COMPLETED)}
        return self._execute(self._ledger.statements.complete, values)

    def _execute(self, statement: Any, values: dict[str, Any]) -> bool:
        try:
            with exempt():
                return bool(self.connection.execute(statement, values).rowcount == 1)
        except DBAPIError as error:
            raise self._ledger.translated(error) from error

    def _end_body(self) -> None:
        """Flush what the session still has, and make sure that the transaction is the one we began."""
        watch = self._watch
        if watch is not None and watch.how is not None:
            raise watch.error()
        self._check_registry()
        if self.is_broken:
            raise LedgerUnavailable(ledger=self._ledger.name, reason="the connection broke in the body")
        if self.connection.closed or self.connection.invalidated:
            self._open_again()
        if self._ledger.dialect.has_failed(self._driver):
            raise self._escaped(FAILED)
        self._check_driver()
        self._flush()
        self._in_body.close()
        self._check_driver()

    def _open_again(self) -> None:
        """Go on in a transaction of its own where the body was allowed to end the one it had."""
        if not self._allow_escape:
            raise self._escaped(CLOSED)
        if self._ledger.source.registry is None and self._session is not None:
            self._session.close()
            self._session = None
        try:
            with self._ledger.errors():
                self._connect()
        except Locked as error:
            raise LedgerUnavailable(ledger=self._ledger.name, reason="another writer holds it") from error

    def _check_driver(self) -> None:
        if not self._allow_escape and self._ledger.dialect.has_left(self._driver):
            raise self._escaped(ENDED)

    def _flush(self) -> None:
        session = self._session
        if session is None:
            return
        try:
            with self._own():
                if self._ledger.source.registry is None:
                    session.commit()
                else:
                    session.flush()
        except DBAPIError as error:
            if self._ledger.is_conflict(error):
                raise Conflict from error
            if self._ledger.is_lost(error):
                reason = "the connection broke before the commit"
                raise LedgerUnavailable(ledger=self._ledger.name, reason=reason) from error
            raise
        except PendingRollbackError as error:
            raise self._escaped(FAILED) from error

    def _check_registry(self) -> None:
        registry, session = self._ledger.source.registry, self._session
        if registry is None or self._allow_escape or session is None:
            return
        if registry() is not session or not session.in_transaction():
            raise self._escaped(REMOVED)

    def _escaped(self, how: str) -> TransactionEscaped:
        return TransactionEscaped(key=self._claim.key, how=how)

    def meaning(self, error: BaseException) -> BaseException:
        """See `ports.Work.meaning`: the watch has raised it where the way out was tried."""
        return error

    def undo_body(self) -> None:
        """See `ports.Work.undo_body`: the transaction is begun again, which costs a working body nothing."""
        self.rollback()
        self._session = self._watch = None
        self._in_body = ExitStack()
        self._outgoing = Outgoing()
        if isinstance(self.enter(), Refused):
            raise Conflict

    def commit(self) -> None:
        """See `ports.Work.commit`."""
        crashpoints.crash_point("commit.before")
        self._in_doubt = False
        try:
            with exempt(), self._own():
                self._commit()
        except DBAPIError as error:
            if self._ledger.is_conflict(error):
                raise Conflict from error
            if not self._ledger.is_lost(error):
                raise
            ask_how_it_ended(self._ledger, self._claim, self._outcome_state)
        self._outgoing.commit()
        crashpoints.crash_point("commit.after")

    def _commit(self) -> None:
        if self._ledger.source.registry is not None and self._session is not None:
            self._session.commit()
        else:
            transaction = self.connection.get_transaction()
            if transaction is not None:
                transaction.commit()

    def rollback(self) -> None:
        """See `ports.Work.rollback`."""
        self._in_body.close()
        connection, session = self._connection, self._session
        watch = self._watch
        began, self._in_doubt = self._in_doubt, False
        has_left = began and self._ledger.dialect.has_left(self._driver)
        with exempt(), self._own():
            if watch is not None and watch.how is not None and connection is not None:
                with suppress(Exception):
                    connection.invalidate()
            if session is not None:
                with suppress(SQLAlchemyError):
                    session.close()
            if connection is not None:
                with suppress(SQLAlchemyError):
                    connection.close()
            registry = self._ledger.source.registry
            if registry is not None and session is not None:
                with suppress(SQLAlchemyError):
                    registry.remove()
                self._give_back_callers(registry)
        self._connection = None
        if has_left or (began and self._committed is None and not self.is_broken):
            self._leave_nothing()

    def _leave_nothing(self) -> None:
        """A body that failed after it had committed through the driver left an entry that says it is done.

        Nobody can tell how much of its work that commit took along: the entry becomes unknown. Where the body stayed
        in its transaction, as nearly all do, there is no entry.
        """
        with suppress(LedgerUnavailable):
            self._ledger.mark_unknown(self._claim.digest, self._claim.attempt)

    def _give_back_callers(self, registry: Any) -> None:
        """A direct call leaves its caller's session as it was, pending work and all."""
        callers, self._callers = self._callers, None
        if callers is not None:
            registry.registry.set(callers)

    def _own(self) -> AbstractContextManager[None]:
        return self._watch.ours() if self._watch is not None else nullcontext()
