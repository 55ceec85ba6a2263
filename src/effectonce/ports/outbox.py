"""What sending needs from the outside: where messages wait, and where they go.

As in `effectonce.ports`, a store decides nothing, and raises LedgerUnavailable when it cannot be asked.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from effectonce.domain.outbox import Depth, Message, Stage, Stored


class Batch(Protocol):
    """Messages that are sent in one ``once.outbox()`` outside of a body."""

    def send(self, message: Message) -> None:
        """Take a message."""
        ...

    def commit(self) -> None:
        """The context is left without an error: store what is not stored yet."""
        ...


class OutboxStore(Protocol):
    """Where messages wait. Each method is a short transaction of its own; none is held open while a message is sent.

    Whoever takes a message gets it for a time (`domain.outbox.HOLD`); a taker that dies leaves it to the next one.
    """

    def here(self, *, dispatch: Callable[[Sequence[Stored]], None]) -> Batch | None:
        """A batch that goes with the transaction which this thread has open in the database's framework.

        None where there is no framework: then messages are stored in a transaction of their own.
        """
        ...

    def forgo(self) -> None:
        """From now on store nothing in this process: what was to be stored is answered, and sent after the commit.

        A message that its broker does not take then is lost, as without an outbox.
        """
        ...

    def around(self, *, dispatch: Callable[[Sequence[Stored]], None]) -> Any:
        """Something whose ``send(message)`` stores with the framework's transaction that this thread has open.

        None where it has none, and where there is no framework. What wraps a test case does not count.
        """
        ...

    def store(self, messages: Sequence[Message], *, effect: bytes | None = None) -> Sequence[Stored]:
        """Store messages in a transaction of their own, all or none; answers those that the caller is to send."""
        ...

    def join(self, session: Any, *, dispatch: Callable[[Sequence[Stored]], None]) -> Any:
        """Something whose ``send(message)`` stores messages with *session*'s transaction, and then dispatches them.

        Raises OutboxUnsuitable for a session that does not reach the ledger's database.
        """
        ...

    def is_session_of(self, work: Any, session: Any) -> bool:
        """Tell whether *session* is the one of a body's *work*."""
        ...

    def take(self, limit: int, *, hold: float, parked: bool = False) -> Sequence[Stored]:
        """Take up to *limit* messages that are due, without waiting for anybody; *parked*: those not yet due too.

        Oldest first. Of messages that share an order only the first one that is still there, so that nobody overtakes.
        """
        ...

    def take_of(self, effect: bytes, *, hold: float, at_once: bool) -> Sequence[Stored]:
        """Take what an effect has sent and is still here; *at_once*: also what its writer may be sending now."""
        ...

    def strike(self, sent: Sequence[Stored]) -> None:
        """Remove messages that the broker has."""
        ...

    def give_back(self, unsent: Sequence[Stored], *, pause: float) -> None:
        """Let messages go that could not be tried; they are due in *pause* seconds, and the try is not counted."""
        ...

    def refuse(self, stored: Stored, *, error: str, pause: float | None) -> None:
        """Note why a message was refused, and when it is due again; *pause* None: it is stuck."""
        ...

    def cancel(self, task_ids: Sequence[str]) -> int:
        """Remove parked messages of these tasks; answers how many there were."""
        ...

    def unstick(self) -> int:
        """Make what is stuck due now, as if it had never been tried; answers how many."""
        ...

    def waiting(self, *, stage: Stage | None, limit: int) -> Sequence[Stored]:
        """Up to *limit* messages, oldest first, bodies included. For people."""
        ...

    def depth(self) -> Depth:
        """How much waits."""
        ...

    def elect(self, holder: bytes, *, seats: int, seconds: float) -> bool:
        """Take or keep one of *seats* seats for *seconds*; False when others have them all."""
        ...

    def resign(self, holder: bytes) -> None:
        """Give a seat up."""
        ...

    def listen(self, wake: Callable[[], None], *, url: str | None) -> Callable[[], None] | None:
        """Have *wake* called, from another thread, when a message is stored that its writer leaves to the relays.

        *url*: a way to the database without a pooler. Answers what ends it; None where the database cannot do it.
        """
        ...


class Broker(Protocol):
    """Where messages go."""

    def send(self, messages: Sequence[Message]) -> Sequence[Exception | None]:
        """Send messages, and return when the broker has them: for each None, or why it was refused.

        Raises BrokerAway when the broker could not be reached, or not to the end: any of them may have arrived.
        """
        ...


class BrokerAway(Exception):
    """The broker could not be asked. *sent*: how many of the messages, the first ones, have arrived for certain."""

    def __init__(self, reason: str = "it does not answer", *, sent: int = 0) -> None:
        super().__init__(reason)
        self.sent = sent
