"""Where a message that is sent goes: to the broker, or with a transaction into the outbox.

A guarded `Transactional` body's messages go with its work. Elsewhere a context (`once.outbox`) says which transaction
they belong to. What is sent for the protocol's sake (a retry, a copy that is put off) never goes into an outbox: it
must not be undone with the body, nor wait for it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from effectonce.app.frames import Frame, current_frame
from effectonce.app.http import current_conversation
from effectonce.app.recorder import Recorder
from effectonce.app.transactions import goes_into_outbox, in_thread, transaction_around
from effectonce.domain.outbox import Message, Stored
from effectonce.errors import OutboxUnsuitable
from effectonce.ports import TransactionalStore, is_transactional
from effectonce.ports.outbox import Batch, OutboxStore
from effectonce.runtime.transactional import TransactionalAttempt

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce


LONGEST_ORDER: Final = 190
"""Characters that a name of an order may have."""


class Transaction(Protocol):
    """An open transaction of the ledger's database that messages can go with."""

    def send(self, message: Message) -> None:
        """Let *message* be stored with it, and sent after its commit."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Collecting:
    """Messages go with *transaction*, as long as *frame* is the innermost guarded call; *order*: kept among them."""

    once: "EffectOnce"
    transaction: Transaction | None
    frame: Frame | None
    order: str | None = None

    def recorder(self, producer: Any, name: str, *, due: float | None) -> Recorder:
        """A producer that gives the message to the transaction."""
        assert self.transaction is not None, "asked for without a transaction"  # noqa: S101 - a mistake of ours
        return Recorder(producer, self.transaction.send, task=name, order=self.order, due=due)


_collecting: ContextVar[Collecting | None] = ContextVar("effectonce_collecting", default=None)


def collecting_for(once: "EffectOnce", producer: Any) -> Collecting | None:
    """Which transaction a message of this thread goes with; None: it is sent now."""
    frame, said = current_frame(), _collecting.get()
    if said is None or said.frame is not frame or said.once is not once:
        said = _of_body(once, frame) or _of_request(once, frame)
    if said is None or said.transaction is None or not once.is_own_broker(producer.connection):
        return None
    return said


def collecting_around(
    once: "EffectOnce", producer: Any, name: str, guard: Any, headers: dict[str, Any]
) -> Collecting | None:
    """The same; and where nothing says so, the caller's own transaction that is open (`app.transactions`)."""
    found, frame, said = collecting_for(once, producer), current_frame(), _collecting.get()
    is_said = said is not None and said.frame is frame and said.once is once
    if found is not None or is_said or (frame is not None and frame.replaced):
        return found
    if not once.is_own_broker(producer.connection):
        return None
    transaction = transaction_around(once, name, guard, headers)
    return None if transaction is None else Collecting(once=once, transaction=transaction, frame=frame)


def is_collecting(once: "EffectOnce", guard: Any) -> bool:
    """Whether a message of this thread would be stored with a transaction now."""
    frame, said = current_frame(), _collecting.get()
    if said is not None and said.frame is frame and said.once is once:
        return said.transaction is not None
    return (_of_body(once, frame) or _of_request(once, frame)) is not None or goes_into_outbox(once, guard)


@contextmanager
def sending_now(once: "EffectOnce") -> Iterator[None]:
    """A context whose messages go to the broker, whatever is open around it."""
    token = _collecting.set(Collecting(once=once, transaction=None, frame=current_frame()))
    try:
        yield
    finally:
        _collecting.reset(token)


@contextmanager
def recording(once: "EffectOnce", keep: Callable[[Message], None]) -> Iterator[None]:
    """A context whose messages are given to *keep*, ready for the outbox, and sent nowhere."""
    token = _collecting.set(Collecting(once=once, transaction=_Kept(keep), frame=current_frame()))
    try:
        yield
    finally:
        _collecting.reset(token)


def park(once: "EffectOnce", producer: Any, name: str, send: Callable[[Recorder], Any], due: float) -> None:
    """Store a message until it is due, in a committed transaction of its own; returns when it is safe there.

    Raises OutboxUnsuitable where the ledger has no outbox.
    """
    alone = _Alone(once.outbox_store(), once.dispatcher.dispatch)
    send(Recorder(producer, alone.send, task=name, order=None, due=due))
    alone.commit()


def _of_body(once: "EffectOnce", frame: Frame | None) -> Collecting | None:
    if frame is None or not frame.entered or frame.guard.once is not once:
        return None
    attempt = frame.attempt
    if isinstance(attempt, TransactionalAttempt) and attempt.work is not None:
        return Collecting(once=once, transaction=attempt.work, frame=frame)
    return None


def _of_request(once: "EffectOnce", frame: Frame | None) -> Collecting | None:
    """The transaction of an HTTP request, where its endpoint has asked for it and no guarded body is between."""
    conversation = current_conversation()
    if frame is not None or conversation is None or conversation.once is not once:
        return None
    work = conversation.exchange.work
    return None if work is None else Collecting(once=once, transaction=work, frame=None)


class Outbox:
    """The context that `once.outbox` gives; for ``with`` and ``async with``."""

    def __init__(self, once: "EffectOnce", session: Any, *, order: str | None) -> None:
        if order is not None and len(order) > LONGEST_ORDER:
            raise OutboxUnsuitable(ledger="", reason=f"in_order has more than {LONGEST_ORDER} characters")
        self._once = once
        self._session = session
        self._order = order
        self._token: Token[Collecting | None] | None = None
        self._alone: Batch | None = None

    def __enter__(self) -> Self:
        frame = current_frame()
        collecting = Collecting(
            once=self._once, transaction=self._transaction(frame), frame=frame, order=self._order or _order_around()
        )
        self._token = _collecting.set(collecting)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._token is not None, "left before it was entered"  # noqa: S101 - a mistake of ours
        _collecting.reset(self._token)
        if self._alone is not None and kind is None:
            self._alone.commit()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        alone, self._alone = self._alone, None
        self.__exit__(kind)
        if alone is not None and kind is None:
            from asyncio import to_thread  # noqa: PLC0415 - whoever is here has it; a worker need not load it

            await to_thread(alone.commit)

    def _transaction(self, frame: Frame | None) -> Transaction:
        body = _of_body(self._once, frame) or _of_request(self._once, frame)
        around = None if body is None else body.transaction
        ledgers = self._ledgers()
        if self._session is None:
            return self._own(ledgers[0]) if around is None else around
        unsuitable: OutboxUnsuitable | None = None
        for ledger in ledgers:
            if around is not None and ledger.outbox.is_session_of(around, self._session):
                return around
            try:
                return self._joined(ledger)
            except OutboxUnsuitable as error:
                unsuitable = unsuitable or error
        assert unsuitable is not None, "there is a ledger"  # noqa: S101 - a mistake of ours
        raise unsuitable

    def _ledgers(self) -> list[TransactionalStore]:
        """Those that have an outbox; the first one is for messages that belong to no session."""
        found = [ledger for ledger in self._once.ledgers if is_transactional(ledger)]
        if not found or not is_transactional(self._once.ledger):
            raise OutboxUnsuitable(ledger=self._once.ledger.name, reason="the ledger is not a SQL database")
        return found

    def _own(self, ledger: TransactionalStore) -> Transaction:
        dispatch = self._once.dispatcher_of(ledger).dispatch
        self._alone = ledger.outbox.here(dispatch=dispatch) or _Alone(ledger.outbox, dispatch)
        return self._alone

    def _joined(self, ledger: TransactionalStore) -> Transaction:
        dispatch = self._once.dispatcher_of(ledger).dispatch
        is_async = hasattr(self._session, "sync_session")
        joined: Transaction = ledger.outbox.join(self._session, dispatch=in_thread(dispatch) if is_async else dispatch)
        return joined


@dataclass(frozen=True, slots=True)
class _Kept:
    """Messages that whoever recorded them stores."""

    send: Callable[[Message], None]


class _Alone:
    """Messages that belong to no other work: all are stored together at the end, or none."""

    def __init__(self, store: OutboxStore, dispatch: Callable[[Sequence[Stored]], None]) -> None:
        self._store = store
        self._dispatch = dispatch
        self._messages: list[Message] = []

    def send(self, message: Message) -> None:
        self._messages.append(message)

    def commit(self) -> None:
        if self._messages:
            stored = self._store.store(self._messages)
            if stored:
                self._dispatch(stored)


def _order_around() -> str | None:
    around = _collecting.get()
    return around.order if around is not None and around.frame is current_frame() else None
