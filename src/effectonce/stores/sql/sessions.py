"""The outbox of a session of the user's own: its messages commit with whatever the session commits.

They are collected while the transaction is open, stored by `before_commit` and sent by `after_commit`. The session may
be the synchronous one inside an `AsyncSession`.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.exc import UnboundExecutionError
from sqlalchemy.orm import Session, SessionTransaction

from effectonce.domain.outbox import Message, Stored
from effectonce.errors import OutboxUnsuitable
from effectonce.stores.sql.outgoing import Outgoing

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

_HERE: Final = "effectonce_outbox"
"""Where a session keeps its outbox in `Session.info`."""

_AFTER: Final = "effectonce_after_commit"

Dispatch = Callable[[Sequence[Stored]], None]


def session_of(given: Any) -> Session:
    """The synchronous session that *given* is, or holds: a registry's, or an AsyncSession's."""
    if hasattr(given, "registry") and callable(given):  # a scoped_session or async_scoped_session
        given = given()
    session = getattr(given, "sync_session", given)
    if not isinstance(session, Session):
        reason = f"once.outbox(...) takes a Session, a scoped_session or an AsyncSession, not {type(given).__name__}"
        raise OutboxUnsuitable(ledger="", reason=reason)
    return session


def outbox_of(ledger: "SqlLedger", session: Session, *, dispatch: Dispatch) -> "SessionOutbox":
    """The outbox of a session; made once for each."""
    found = session.info.get(_HERE)
    if not isinstance(found, SessionOutbox):
        found = session.info[_HERE] = SessionOutbox(ledger, session, dispatch=dispatch)
    return found


class SessionOutbox:
    """Collects what is sent in one session's transactions, one after the other."""

    def __init__(self, ledger: "SqlLedger", session: Session, *, dispatch: Dispatch) -> None:
        self._ledger = ledger
        self._session = session
        self._bind = _bind_of(ledger, session)
        self._dispatch = dispatch
        self._outgoing = Outgoing()
        self._is_committed = False
        self._outgoing.follow(session)
        event.listen(session, "before_commit", self._before_commit)
        event.listen(session, "after_commit", self._after_commit)
        event.listen(session, "after_transaction_end", self._after_end)

    def send(self, message: Message) -> None:
        """Let *message* be stored with the session's transaction; a savepoint that is rolled back takes it along."""
        self._outgoing.add(message, session=self._session)

    def _before_commit(self, session: Session) -> None:
        if session.in_nested_transaction():
            return
        session.flush()
        if self._outgoing:
            connection = session.connection(bind_arguments={"bind": self._bind})
            self._outgoing.store(self._ledger, connection, effect=None)

    def _after_commit(self, session: Session) -> None:
        if session.in_nested_transaction():
            return
        self._is_committed = True
        self._outgoing.commit()
        stored, late = self._outgoing.committed, self._outgoing.take()
        if late:  # sent by a listener after ours: what they belong to is committed
            stored = [*stored, *self._ledger.outbox.store(late)]
        if stored:
            self._dispatch(stored)

    def _after_end(self, _session: Session, transaction: SessionTransaction) -> None:
        if transaction.parent is None:
            if not self._is_committed:
                self._outgoing.clear()
            self._is_committed = False


class AfterCommit:
    """Messages that are sent after a session's commit, and stored nowhere: its database is not the ledger's."""

    def __init__(self, session: Session, *, send: Callable[[Sequence[Message]], None]) -> None:
        self._session = session
        self._send = send
        self._outgoing = Outgoing()
        self._outgoing.follow(session)
        event.listen(session, "after_commit", self._after_commit)

    @classmethod
    def of(cls, session: Session, *, send: Callable[[Sequence[Message]], None]) -> "AfterCommit":
        """That of a session; made once for each."""
        found = session.info.get(_AFTER)
        if not isinstance(found, AfterCommit):
            found = session.info[_AFTER] = cls(session, send=send)
        return found

    def send(self, message: Message) -> None:
        """Let *message* be sent after the commit; a savepoint that is rolled back takes it along."""
        self._outgoing.add(message, session=self._session)

    def _after_commit(self, session: Session) -> None:
        if session.in_nested_transaction():
            return
        messages = self._outgoing.take()
        if messages:
            self._send(messages)


def _bind_of(ledger: "SqlLedger", session: Session) -> Engine | Connection:
    """What the session reaches the ledger's database by."""
    engine = ledger.source.engine
    try:
        bind = session.get_bind()
    except UnboundExecutionError:
        bind = None
    binds = [bind, *getattr(session, "_Session__binds", {}).values()]
    for each in binds:
        if each is not None and place_of(each.engine.url) == place_of(engine.url):
            return each  # type: ignore[no-any-return]
    reason = "the session belongs to another database than the ledger"
    raise OutboxUnsuitable(ledger=ledger.name, reason=reason)


def place_of(url: URL) -> tuple[Any, ...]:
    """The database that a URL leads to, whatever driver and user it names."""
    host = url.host or url.query.get("host") or ""
    is_here = host in {"", "localhost", "127.0.0.1", "::1"}
    return url.get_backend_name(), "localhost" if is_here else host, url.port or url.query.get("port"), url.database
