"""The part of an app that serves HTTP requests under a key; the middleware are in `effectonce.http`.

A request that a middleware has let in is known to whatever runs because of it, by a context variable: frameworks carry
it into the threads that run synchronous endpoints. Messages that it sends go with its transaction, once the endpoint
has asked for that.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Optional

from effectonce.app.transactions import in_thread
from effectonce.domain.claims import Claim
from effectonce.domain.idempotency import digest_of, readable
from effectonce.domain.outbox import Stored
from effectonce.errors import OutsideEffect
from effectonce.runtime.exchange import Dispatch, Exchange

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

_MANY_DEATHS = 30_000
"""A request is repeated by its caller, not by a broker: however many processes it has ended, it may come again."""

_current: ContextVar[Optional["Conversation"]] = ContextVar("effectonce_http", default=None)


class Conversation:
    """One HTTP request at this app, and the exchange that it is."""

    def __init__(self, once: "EffectOnce", exchange: Exchange, *, key: str | None) -> None:
        self.once = once
        self.exchange = exchange
        self.key = key

    @property
    def header(self) -> str | None:
        """What a message that it sends carries, so that a task without a key of its own is named by the request."""
        claim = self.exchange.claim
        return None if claim is None else claim.digest.hex()

    @contextmanager
    def current(self) -> Iterator[None]:
        """A context in which this is the request that is being served."""
        around = _current.get()
        _current.set(self)
        try:
            yield
        finally:
            _current.set(around)  # no token: a framework may leave it in another context than it entered


def current_conversation() -> Conversation | None:
    """The request that this thread is serving, if a middleware has let it in."""
    return _current.get()


class Http:
    """What endpoints see of their request, and middleware of the app: ``once.http``."""

    def __init__(self, once: "EffectOnce") -> None:
        self._once = once

    def session(self) -> Any:
        """The session of the request's own transaction: ``Depends(once.http.session)``, or just call it.

        Work, messages and the record of the answer commit together, before the answer leaves. Its ``commit()`` ends a
        savepoint. An `AsyncSession` where the middleware was given ``sessions=``. Raises OutsideEffect where no
        middleware of this app serves a request, LedgerUnsuitable where the ledger is no SQL database.
        """
        return self._serving("http.session()").exchange.open().face

    @property
    def key(self) -> str | None:
        """The request's key, as its caller wrote it; None for a request without one."""
        return self._serving("http.key").key

    def _serving(self, face: str) -> Conversation:
        conversation = current_conversation()
        if conversation is None or conversation.once is not self._once:
            raise OutsideEffect(face=face)
        return conversation

    def converse(self, *, sessions: Any = None) -> Conversation:
        """A request without a key."""
        once = self._once
        dispatch = _dispatch_of(once, aside=sessions is not None)
        exchange = Exchange(None, once.ledger, None, dispatch=dispatch, emit=once.emit, sessions=sessions)
        return Conversation(once, exchange, key=None)

    def converse_under(
        self,
        key: str,
        *,
        caller: str,
        method: str,
        path: str,
        fingerprint: bytes,
        keep: float | None,
        lease: float | None,
        sessions: Any = None,
    ) -> Conversation:
        """A request under a key; nothing is claimed yet. *keep*, *lease*: seconds."""
        once = self._once
        settings = once.settings
        namespace = settings.namespace if isinstance(settings.namespace, str) else ""
        claim = Claim(
            digest=digest_of(namespace=namespace, caller=caller, key=key),
            key=readable(method=method, path=path, caller=caller, key=key),
            attempt=os.urandom(8),
            identity=os.urandom(16),
            task_id="",
            fingerprint=fingerprint,
            lease=settings.lease_seconds if lease is None else lease,
            max_takeovers=_MANY_DEATHS,
            keep=keep,
        )
        ledger, dispatch = once.ledger, _dispatch_of(once, aside=sessions is not None)
        exchange = Exchange(claim, ledger, once.keeper_of(ledger), dispatch=dispatch, emit=once.emit, sessions=sessions)
        return Conversation(once, exchange, key=key)


def _dispatch_of(once: "EffectOnce", *, aside: bool) -> Dispatch:
    """Sends what is committed; *aside*: from a thread.

    The dispatcher is made when there is something to send: it wants a SQL ledger.
    """

    def dispatch(stored: Sequence[Stored]) -> None:
        send = once.dispatcher.dispatch
        (in_thread(send) if aside else send)(stored)

    return dispatch
