"""The transaction of one HTTP request: its endpoint's work, its messages and the record of its answer commit together.

It begins when the endpoint's session first touches the database, and is ended by the middleware. What the endpoint
commits by itself ends a savepoint only, so all of it waits for the answer. Where the request has a key, its claim is
committed before the endpoint runs; the transaction then takes the key's try-lock, under which no other attempt gets
the effect, and its last statement writes the answer on condition of the fence.

The session may be an `AsyncSession`: everything here is then called inside SQLAlchemy's greenlet (`spawn`).
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.orm import Session
from sqlalchemy.util import await_only, greenlet_spawn

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.domain.outbox import Message, Stored
from effectonce.errors import FenceRefused, LedgerUnavailable, OutboxUnsuitable
from effectonce.ports import Conflict
from effectonce.stores.sql.asking import ask_how_it_ended
from effectonce.stores.sql.asynchronous import is_one_of
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.outgoing import Outgoing, watch_savepoints
from effectonce.stores.sql.reservations import ReservingWork
from effectonce.stores.sql.rows import held_values, lock_of, outcome_values, silence_values
from effectonce.stores.sql.sessions import place_of, session_of
from effectonce.stores.sql.transactions import SETTLE_WAIT

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncSession

    from effectonce.stores.sql.ledger import SqlLedger

T = TypeVar("T")

MOMENT: Final = 0.01
"""Seconds between two tries of the try-lock."""


class SqlExchange(ReservingWork):
    """See `ports.exchanges.ExchangeWork`. Without *claim* it is a plain transaction, with an outbox."""

    def __init__(
        self, ledger: "SqlLedger", claim: Claim | None, granted: Granted | None, *, sessions: Any = None
    ) -> None:
        self._ledger = ledger
        self._claim = claim
        self._granted = granted
        self._outgoing = Outgoing()
        self._begun: Connection | None = None
        self._ended = State.COMPLETED
        self._callers: Session | None = None
        self.is_async = is_one_of(sessions, "async_sessionmaker", "AsyncEngine")
        self._engine = _engine_of(ledger, sessions) if self.is_async else ledger.source.engine
        self.face: Any = self._async_session(sessions) if self.is_async else self._sync_session()
        self.session: Session = session_of(self.face)
        self._route()

    def _route(self) -> None:
        """Whatever would go to the ledger's database goes through the one transaction; other engines are their own."""
        plain = self._plain = self.session.get_bind

        def get_bind(*args: Any, **kwargs: Any) -> Engine | Connection:
            found = plain(*args, **kwargs)
            return self.connection if found is self._engine else found

        vars(self.session)["get_bind"] = get_bind

    def _sync_session(self) -> Session:
        source = self._ledger.source
        if source.registry is None:
            return session_of(source.session(self._engine))  # every bind is looked at again in `_route`
        registry: Any = source.registry
        session = session_of(registry.session_factory(join_transaction_mode="create_savepoint"))
        with suppress(RuntimeError):  # outside of the application's context nobody asks the registry
            self._callers = registry() if registry.registry.has() else None
            registry.registry.set(session)
        return session

    def _async_session(self, sessions: Any) -> "AsyncSession":
        if is_one_of(sessions, "AsyncEngine"):
            from sqlalchemy.ext.asyncio import AsyncSession  # noqa: PLC0415 - its user has loaded it

            return AsyncSession(sessions, join_transaction_mode="create_savepoint")
        session: AsyncSession = sessions(join_transaction_mode="create_savepoint")
        return session

    @property
    def connection(self) -> Connection:
        """The connection of the transaction, which begins with it; raises FenceRefused where the claim was lost."""
        if self._begun is None:
            self._begun = self._begin()
        return self._begun

    def _give_back_registry(self) -> None:
        """The registry makes a session of its own again; one that another thread's has kept is an ordinary one now."""
        registry: Any = self._ledger.source.registry
        if registry is None or self.is_async:
            vars(self.session)["get_bind"] = _over
            return
        vars(self.session)["get_bind"] = self._plain
        with suppress(RuntimeError):
            if registry.registry.has() and registry() is self.session:
                registry.registry.clear()
                if self._callers is not None:
                    registry.registry.set(self._callers)

    async def spawn(self, call: Callable[[], T]) -> T:
        """Call in the place where an asynchronous connection may be used."""
        answer: T = await greenlet_spawn(call)
        return answer

    def send(self, message: Message) -> None:
        """See `ports.Work.send`."""
        self._outgoing.add(message, session=self.session)

    def open(self) -> None:
        """Nothing: the session opens it."""

    def seal(self) -> None:
        """Take what the session holds into the transaction, before a framework closes the session."""
        self.session.commit()

    def _begin(self) -> Connection:
        ledger = self._ledger
        _ = ledger.statements
        watch_savepoints(self._engine)
        try:
            with exempt(), ledger.errors():
                connection = self._engine.connect()
                try:
                    self._take_up(connection)
                except BaseException:
                    connection.close()
                    raise
        except Locked as error:
            raise LedgerUnavailable(ledger=ledger.name, reason="another writer holds it") from error
        self._outgoing.follow_connection(connection)
        return connection

    def _take_up(self, connection: Connection) -> None:
        ledger, claim, granted = self._ledger, self._claim, self._granted
        connection.begin()
        ledger.dialect.begin(connection, wait=SETTLE_WAIT)
        if claim is None or granted is None:
            return
        ledger.dialect.limit_silence(connection, None)
        values = {**held_values(granted), "lock": lock_of(granted.digest), **silence_values(None)}
        end = time.monotonic() + SETTLE_WAIT
        while not ledger.dialect.is_mine(connection.execute(ledger.statements.resume, values)):
            if time.monotonic() > end or not stands(ledger.entry_on(connection, granted.digest)[0], granted):
                raise FenceRefused(key=claim.key, fence=granted.fence, attempt=granted.attempt.hex())
            self._pause()  # a twin that looks at the entry has the try-lock for a moment

    def _pause(self) -> None:
        if self.is_async:
            await_only(asyncio.sleep(MOMENT))
        else:
            time.sleep(MOMENT)

    def finish(self, outcome: Outcome | None) -> bool:
        """See `ports.exchanges.ExchangeWork.finish`."""
        self.seal()
        claim, granted = self._claim, self._granted
        self._outgoing.store(self._ledger, self.connection, effect=None if claim is None else claim.digest)
        if granted is None or outcome is None:
            return True
        self._ended = outcome.state
        crashpoints.crash_point("settle.before")
        values = {**outcome_values(granted, outcome), "inserted": int(State.CLAIMED)}
        with exempt(), self._ledger.errors():
            done = self.connection.execute(self._ledger.statements.complete, values).rowcount == 1
        crashpoints.crash_point("settle.after")
        return done

    def commit(self) -> None:
        """See `ports.exchanges.ExchangeWork.commit`."""
        crashpoints.crash_point("commit.before")
        transaction = self.connection.get_transaction()
        try:
            with exempt():
                if transaction is not None:
                    transaction.commit()
        except DBAPIError as error:
            self._lost_or_refused(error)
        self._outgoing.commit()
        crashpoints.crash_point("commit.after")
        self.rollback()

    def _lost_or_refused(self, error: DBAPIError) -> None:
        """Return if it is committed after all."""
        if self._ledger.is_conflict(error):
            raise Conflict from error
        if not self._ledger.is_lost(error):
            raise error
        if self._claim is None:
            reason = "the connection broke at the commit; whether it was committed is not known"
            raise LedgerUnavailable(ledger=self._ledger.name, reason=reason) from error
        ask_how_it_ended(self._ledger, self._claim, self._ended)

    def hand_over(self, _dispatch: Callable[[Sequence[Stored]], None]) -> Sequence[Stored]:
        """See `ports.Work.hand_over`."""
        return self._outgoing.committed

    def rollback(self) -> None:
        """See `ports.Work.rollback`."""
        connection, self._begun = self._begun, None
        self._give_back_registry()
        with exempt():
            if connection is not None:
                with suppress(SQLAlchemyError):
                    self.session.close()
                with suppress(SQLAlchemyError):
                    connection.close()


def stands(entry: Entry | None, granted: Granted) -> bool:
    """Whether a claim that was granted still holds its entry."""
    mine = entry is not None and (entry.attempt, entry.fence) == (granted.attempt, granted.fence)
    return mine and entry is not None and entry.state is State.CLAIMED


def _over(*_: Any, **__: Any) -> Connection:
    message = "the request's transaction is over: its answer has been given"
    raise LedgerUnavailable(ledger="", reason=message)


def _engine_of(ledger: "SqlLedger", sessions: Any) -> Engine:
    bind = sessions if is_one_of(sessions, "AsyncEngine") else sessions.kw.get("bind")
    if not is_one_of(bind, "AsyncEngine"):
        reason = "the async_sessionmaker has no engine: give async_sessionmaker(engine)"
        raise OutboxUnsuitable(ledger=ledger.name, reason=reason)
    if place_of(bind.url) != place_of(ledger.source.engine.url):
        reason = "the asynchronous engine belongs to another database than the ledger"
        raise OutboxUnsuitable(ledger=ledger.name, reason=reason)
    return cast("Engine", bind.sync_engine)
