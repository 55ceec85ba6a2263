"""The transaction of a guarded call inside a guarded body: a savepoint of the body's own."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from effectonce.domain.claims import Claim, Granted
from effectonce.domain.outbox import Message
from effectonce.ports import Work
from effectonce.stores.sql.work import CLOSED, SqlWork

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

NESTED = "it committed or rolled back the session of the guarded body around it"


class NestedWork(SqlWork):
    """The work of a guarded call inside a guarded body: a savepoint of the same transaction."""

    _own_transaction = False

    def __init__(
        self, ledger: "SqlLedger", claim: Claim, *, outer: Work, granted: Granted | None, keep: float | None
    ) -> None:
        super().__init__(ledger, claim, granted=granted, allow_escape=True, keep=keep)
        self._outer = outer
        self._savepoint: Any = None

    def send(self, message: Message) -> None:
        """Let it be stored with the whole transaction; if this call's part is undone, its savepoint takes it along."""
        self._outer.send(message)

    def _open(self) -> None:
        self._session = self._outer.session
        self._savepoint = self._outer.session.begin_nested()
        # The savepoint is begun only when the session takes the connection: before our entry, not after it.
        engine = self._ledger.source.engine if self._ledger.source.registry is not None else None
        self._connection = self._outer.session.connection(bind_arguments={"bind": engine} if engine else None)
        self._driver = self._connection.connection.dbapi_connection

    def _open_again(self) -> None:
        raise self._escaped(CLOSED)

    def _flush(self) -> None:
        if not self._savepoint.is_active:
            raise self._escaped(NESTED)
        self._outer.session.flush()

    def _commit(self) -> None:
        self._savepoint.commit()
        self._savepoint = None

    def rollback(self) -> None:
        """Undo this call's part."""
        savepoint, self._savepoint = self._savepoint, None
        if savepoint is not None and savepoint.is_active:
            with suppress(SQLAlchemyError):
                savepoint.rollback()
