"""The messages of one open transaction, until they are stored by its last statements.

A message that is sent inside a savepoint goes when the savepoint is rolled back. Savepoints come in two ways, and each
has its own sign: a session's nested transaction may touch the database late or never, so a message remembers the
session's transactions that it was sent in, and goes with any of them that ends without a commit; every other savepoint
is a statement on the connection, and takes along what was sent after it began.
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, event
from sqlalchemy.orm import Session, SessionTransaction

from effectonce.domain.outbox import Message, Stored
from effectonce.ports import Conflict
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.locked import Locked

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

_SAVEPOINT: Final = re.compile(
    r"\s*(?:savepoint\s+(?P<began>[^\s;]+)|rollback\s+(?:work\s+|transaction\s+)?to\s+(?:savepoint\s+)?(?P<undone>[^\s;]+))",
    re.IGNORECASE,
)
_STARTS: Final = frozenset("sSrR \t\r\n")

_OUTGOING: Final = "_effectonce_outgoing"
"""The attribute of a body's connection that holds its messages; the connection ends with the body."""

_LISTENED: Final = "_effectonce_hears_savepoints"
"""The attribute of an engine that is listened to."""


@dataclass(frozen=True, slots=True)
class _Sent:
    nth: int
    message: Message
    inside: tuple[SessionTransaction, ...]


class Outgoing:
    """Collects messages, and stores them; *committed* are those that are to be sent now."""

    def __init__(self) -> None:
        self.committed: list[Stored] = []
        self._stored: list[Stored] = []
        self._sent: list[_Sent] = []
        self._count = 0
        self._savepoints: dict[str, int] = {}
        self._session: Session | None = None
        self._committed: set[SessionTransaction] = set()

    def __len__(self) -> int:
        """How many wait to be stored."""
        return len(self._sent)

    def add(self, message: Message, *, session: Session | None) -> None:
        """Add a message that was sent now; *session*: the one that may be inside a savepoint."""
        self._count += 1
        inside = _transactions_of(session)
        if inside and session is not None:
            self.follow(session)
        self._sent.append(_Sent(self._count, message, inside))

    def take(self) -> list[Message]:
        """Give the messages, and forget them."""
        sent, self._sent = self._sent, []
        return [each.message for each in sent]

    def store(self, ledger: "SqlLedger", connection: Connection, *, effect: bytes | None) -> None:
        """Store what was sent in the transaction of *connection*: one statement for all, none for nothing.

        Raises Conflict where another transaction that keeps the same order was waited for in vain.
        """
        messages = self.take()
        if not messages:
            return
        try:
            with exempt(), ledger.errors():
                self._stored = ledger.outbox.store_on(connection, messages, effect=effect)
        except Locked as error:
            raise Conflict from error

    def commit(self) -> None:
        """What was stored is committed."""
        self.committed, self._stored = self._stored, []

    def clear(self) -> None:
        """Forget the messages: what they were sent in is rolled back."""
        self._sent, self._stored = [], []

    def follow(self, session: Session) -> None:
        """Notice which of the session's transactions end without a commit."""
        if self._session is not session:
            self._session = session
            event.listen(session, "after_commit", self._after_commit)
            event.listen(session, "after_transaction_end", self._after_end)

    def follow_connection(self, connection: Connection) -> None:
        """Notice the connection's own savepoints, if its engine was listened to when it was opened."""
        setattr(connection, _OUTGOING, self)

    def hear(self, statement: str) -> None:
        """Notice a savepoint in what is said to the database; forget what was sent since one that is undone."""
        found = _SAVEPOINT.match(statement) if statement[:1] in _STARTS else None
        if found and found["began"]:
            self._savepoints[found["began"]] = self._count
        elif found:
            began = self._savepoints.get(found["undone"], self._count)
            self._sent = [each for each in self._sent if each.nth <= began]

    def _after_commit(self, session: Session) -> None:
        transaction = session.get_nested_transaction() or session.get_transaction()
        if transaction is not None:
            self._committed.add(transaction)

    def _after_end(self, _session: Session, transaction: SessionTransaction) -> None:
        if transaction in self._committed:
            self._committed.discard(transaction)
        else:
            self._sent = [each for each in self._sent if transaction not in each.inside]


def _transactions_of(session: Session | None) -> tuple[SessionTransaction, ...]:
    """The session's open transactions, the innermost first."""
    if session is None:
        return ()
    found = []
    transaction = session.get_nested_transaction() or session.get_transaction()
    while transaction is not None:
        found.append(transaction)
        transaction = transaction.parent
    return tuple(found)


def watch_savepoints(engine: Engine) -> None:
    """Let an engine's new connections tell of their savepoints."""
    if not vars(engine).get(_LISTENED):
        if not event.contains(engine, "before_cursor_execute", _on_statement):
            event.listen(engine, "before_cursor_execute", _on_statement)
        setattr(engine, _LISTENED, True)


def _on_statement(connection: Connection, _cursor: Any, statement: str, *_: Any) -> None:
    """SQLAlchemy's own savepoints are statements too; its events do not tell their names."""
    outgoing: Outgoing | None = getattr(connection, _OUTGOING, None)
    if outgoing is not None:
        outgoing.hear(statement)
