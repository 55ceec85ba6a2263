"""Which session of the user's own is in a transaction here: sessions that are made by what was bound.

A session says when it begins, in the thread or task that begins it; that is where it is found. One that began in
another context (a dependency that FastAPI runs in a thread of its own) is not; name that one in
``once.outbox(session)``. Sessions that the guard has made are not looked at: their commit is not the last word.
"""

from contextvars import ContextVar
from typing import Any, Final
from weakref import ref

from sqlalchemy import event
from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker
from sqlalchemy.orm import Session, SessionTransaction, scoped_session, sessionmaker

GUARDS_OWN: Final = "effectonce_own"
"""Where `Session.info` says that the guard has made it."""

Begun = tuple[ref[Session], ...]


class BoundSessions:
    """The sessions that one `EffectOnce` looks at."""

    def __init__(self) -> None:
        self._begun: ContextVar[Begun] = ContextVar("effectonce_begun", default=())

    def bind(self, maker: Any) -> None:
        """Look at the sessions of a sessionmaker, async_sessionmaker, scoped_session or Session class.

        Raises TypeError for anything else.
        """
        event.listen(_told_by(maker), "after_transaction_create", self._after_create)

    def current(self) -> Session | None:
        """The session that began last here and has not ended."""
        begun = (each() for each in reversed(self._begun.get()))
        return next((session for session in begun if session is not None and session.in_transaction()), None)

    def _after_create(self, session: Session, transaction: SessionTransaction) -> None:
        if transaction.parent is not None or session.info.get(GUARDS_OWN):
            return
        living = (each for each in self._begun.get() if (other := each()) is not None and other is not session)
        self._begun.set((*(each for each in living if _is_open(each)), ref(session)))


def _is_open(each: ref[Session]) -> bool:
    session = each()
    return session is not None and session.in_transaction()


def _told_by(maker: Any) -> Any:
    if isinstance(maker, (async_scoped_session, scoped_session)):
        maker = maker.session_factory
    if isinstance(maker, async_sessionmaker):
        told: type[Session] = maker.kw.get("sync_session_class") or maker.class_.sync_session_class
        own = type(told.__name__, (told,), {"__module__": told.__module__})
        maker.configure(sync_session_class=own)
        return own
    if isinstance(maker, sessionmaker) or (isinstance(maker, type) and issubclass(maker, Session)):
        return maker
    message = f"bind() takes a sessionmaker, async_sessionmaker or scoped_session, not {type(maker).__name__}"
    raise TypeError(message)
