"""The transaction of a body on a connection of its host's: a block of the host, with the entry in it."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from effectonce.domain.claims import Claim, Granted
from effectonce.domain.outbox import Stored
from effectonce.errors import LedgerUnavailable, LedgerUnsuitable
from effectonce.ports import Conflict
from effectonce.stores.sql.dialects import CLAIM_WAIT
from effectonce.stores.sql.escapes import exempt, watch_over
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.outgoing import watch_savepoints
from effectonce.stores.sql.work import CLOSED, SqlWork

if TYPE_CHECKING:
    from effectonce.stores.sql.hosted import Block, HostedLedger


class HostedWork(SqlWork):
    """The whole transaction of a body; inside a transaction that is open already, a savepoint of it."""

    _ledger: "HostedLedger"

    def __init__(
        self, ledger: "HostedLedger", claim: Claim, *, granted: Granted | None, allow_escape: bool, keep: float | None
    ) -> None:
        super().__init__(ledger, claim, granted=granted, allow_escape=allow_escape, keep=keep)
        self._block: Block | None = None

    @property
    def allows_escape(self) -> bool:
        """Whether the body may leave its transaction."""
        return self._allow_escape

    @property
    def _own_transaction(self) -> bool:  # type: ignore[override]
        """Whether this is not a savepoint of somebody else's; as far as is known."""
        return self._block is None or not self._block.is_nested

    def meaning(self, error: BaseException) -> BaseException:
        """See `ports.Work.meaning`."""
        how = None if self._allow_escape else self._ledger.host.escape(error)
        return error if how is None else self._escaped(how)

    def _open(self) -> None:
        ledger = self._ledger
        _ = ledger.statements
        reason = ledger.host.unsuitable()
        if reason is not None:
            facts = {"ledger": ledger.name, "policy": "Transactional", "task": self._claim.key}
            raise LedgerUnsuitable(**facts, reason=reason)
        if not self._allow_escape:
            watch_over(ledger.source.lent)
        watch_savepoints(ledger.source.lent)
        self._connect()

    def _connect(self) -> None:
        block = self._ledger.host.block()
        try:
            self._driver = block.begin()
        except Exception as error:
            block.rollback()
            told = self._ledger.driver_error(error)
            if told is not error:
                raise told from error
            raise
        self._block = block
        self._connection = self._ledger.source.lent.connect()
        self._connection.begin()
        if not block.is_nested:
            self._ledger.dialect.begin(self._connection, wait=CLAIM_WAIT)

    def _start_watch(self) -> None:
        super()._start_watch()
        self._outgoing.follow_connection(self.connection)
        watch = self._watch
        if self._block is not None:
            veto = None if watch is None else watch.veto
            self._in_body.enter_context(self._block.watching(veto=veto, notice=self._notice))

    def _notice(self, statement: str) -> None:
        """Look at what the body is about to say to the database, which does not pass through SQLAlchemy."""
        if self._watch is not None:
            self._watch.hear(statement)
        self._outgoing.hear(statement)

    def _check_registry(self) -> None:
        """Look at the host's own state first: what it has closed, the driver can no longer tell."""
        block = self._block
        if block is None:
            return
        if block.is_closed():
            self._open_again()
            return
        fault = None if self.is_broken else block.fault()
        if fault is not None:
            raise self._escaped(fault)

    def _open_again(self) -> None:
        """Go on in a block of its own where the body was allowed to close the connection."""
        if not self._allow_escape:
            raise self._escaped(CLOSED)
        self._leave()
        try:
            with self._ledger.errors(), exempt():
                self._connect()
        except Locked as error:
            raise LedgerUnavailable(ledger=self._ledger.name, reason="another writer holds it") from error

    def _commit(self) -> None:
        """Commit the block; an error that is the body's own (a deferred constraint) comes as the host tells it."""
        super()._commit()
        block, ledger = self._block, self._ledger
        assert block is not None, "the work was not entered"  # noqa: S101 - a mistake of ours
        try:
            block.commit()
        except Exception as error:
            if ledger.is_conflict(error):
                raise Conflict from error
            told = ledger.driver_error(error)
            if isinstance(told, DBAPIError) and (self.is_broken or ledger.is_lost(told)):
                told.connection_invalidated = True
                raise told from error
            raise

    def hand_over(self, dispatch: Callable[[Sequence[Stored]], None]) -> Sequence[Stored]:
        """See `ports.Work.hand_over`; inside somebody else's block, that one's commit counts."""
        stored, block = self._outgoing.committed, self._block
        if not stored or block is None or not block.is_nested:
            return stored
        block.on_commit(lambda: dispatch(stored))
        return ()

    def rollback(self) -> None:
        """See `ports.Work.rollback`."""
        self._in_body.close()
        began, self._in_doubt = self._in_doubt, False
        has_left = began and not self.is_broken and self._has_left()
        nested = self._block is not None and self._block.is_nested
        self._leave()
        if has_left or (began and self._committed is None and not nested and not self.is_broken):
            self._leave_nothing()

    def _has_left(self) -> bool:
        return self._block is not None and not self._block.is_closed() and self._ledger.dialect.has_left(self._driver)

    def _leave(self) -> None:
        connection, session, block = self._connection, self._session, self._block
        self._connection = self._session = self._block = None
        with exempt(), self._own():
            for each in (session, connection):
                _close(each)
            if block is not None:
                block.rollback()


def _close(each: Any) -> None:
    if each is None:
        return
    try:
        each.close()
    except (SQLAlchemyError, DBAPIError):
        return
