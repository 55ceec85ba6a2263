"""Which session of the user's own is in a transaction here: sessions that are made by what was bound.

A session says when it begins, in the thread or task that begins it; that is where it is found. One that began in
another context (a dependency that FastAPI runs in a thread of its own) is not; name that one in
``once.outbox(session)``. Sessions that the guard has made are not looked at: their commit is not the last word.

A session that has only read is in no transaction that matters: nothing of it can be rolled back, and many are closed
without a commit, which would take a message along that nobody meant to lose.
"""

import re
from contextvars import ContextVar
from typing import Any, Final
from weakref import ref

from sqlalchemy import TextClause, event
from sqlalchemy.orm import ORMExecuteState, Session, SessionTransaction, scoped_session, sessionmaker

from effectonce.stores.sql.asynchronous import is_one_of

GUARDS_OWN: Final = "effectonce_own"
"""Where `Session.info` says that the guard has made it."""

_WROTE: Final = "effectonce_wrote"
"""Where it says that its transaction has written."""

_READS: Final = re.compile(r"\s*(select|show|explain)\b", re.IGNORECASE)

Begun = tuple[ref[Session], ...]


class BoundSessions:
    """The sessions that one `EffectOnce` looks at."""

    def __init__(self) -> None:
        self._begun: ContextVar[Begun] = ContextVar("effectonce_begun", default=())

    def bind(self, maker: Any) -> None:
        """Look at the sessions of a sessionmaker, async_sessionmaker, scoped_session or Session class.

        Raises TypeError for anything else.
        """
        told = _told_by(maker)
        event.listen(told, "after_transaction_create", self._after_create)
        event.listen(told, "after_transaction_end", _after_end)
        event.listen(told, "after_flush", _after_flush)
        event.listen(told, "do_orm_execute", _on_execute)

    def current(self) -> Session | None:
        """The session that began last here, has not ended, and has something to commit."""
        begun = (each() for each in reversed(self._begun.get()))
        return next((session for session in begun if session is not None and _has_work(session)), None)

    def _after_create(self, session: Session, transaction: SessionTransaction) -> None:
        if transaction.parent is not None or session.info.get(GUARDS_OWN):
            return
        living = (each for each in self._begun.get() if (other := each()) is not None and other is not session)
        self._begun.set((*(each for each in living if _is_open(each)), ref(session)))


def _has_work(session: Session) -> bool:
    if not session.in_transaction():
        return False
    return bool(session.info.get(_WROTE) or session.new or session.deleted or session.dirty)


def _after_flush(session: Session, _context: Any) -> None:
    session.info[_WROTE] = True


def _on_execute(state: ORMExecuteState) -> None:
    if not state.is_select and not (isinstance(state.statement, TextClause) and _READS.match(state.statement.text)):
        state.session.info[_WROTE] = True


def _after_end(session: Session, transaction: SessionTransaction) -> None:
    if transaction.parent is None:
        session.info.pop(_WROTE, None)


def _is_open(each: ref[Session]) -> bool:
    session = each()
    return session is not None and session.in_transaction()


def _told_by(maker: Any) -> Any:
    if isinstance(maker, scoped_session) or is_one_of(maker, "async_scoped_session"):
        maker = maker.session_factory
    if is_one_of(maker, "async_sessionmaker"):
        told: type[Session] = maker.kw.get("sync_session_class") or maker.class_.sync_session_class
        own = type(told.__name__, (told,), {"__module__": told.__module__})
        maker.configure(sync_session_class=own)
        return own
    if isinstance(maker, sessionmaker) or (isinstance(maker, type) and issubclass(maker, Session)):
        return maker
    message = f"bind() takes a sessionmaker, async_sessionmaker or scoped_session, not {type(maker).__name__}"
    raise TypeError(message)
