"""What an HTTP request needs of a ledger in whose database its endpoint works; see `effectonce.ports`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from effectonce.domain.claims import Outcome
from effectonce.domain.outbox import Message, Stored

T = TypeVar("T")


class ExchangeWork(Protocol):
    """The transaction of one request, with whatever claim it was made for.

    The life: `open`, the endpoint, then `finish` and `commit`, or `rollback`. After `rollback` or an error of `commit`
    nothing of it is left, unless the error is `CommitUncertain`.
    """

    is_async: bool
    """Whether `finish`, `commit`, `seal` and `rollback` must be called through `spawn`."""

    @property
    def face(self) -> Any:
        """The session that the endpoint gets."""
        ...

    @property
    def session(self) -> Any:
        """The same, where *face* is an asynchronous one: the synchronous session inside it."""
        ...

    def open(self) -> None:
        """Begin, where it does not begin by itself; raises FenceRefused when the claim was lost."""
        ...

    def send(self, message: Message) -> None:
        """Let *message* be stored with this transaction. One that is sent in a savepoint is undone with it."""
        ...

    def seal(self) -> None:
        """Take what the session holds into the transaction."""
        ...

    def finish(self, outcome: Outcome | None) -> bool:
        """Store what was sent and write the outcome as the last statement; False means that the claim was lost."""
        ...

    def commit(self) -> None:
        """Commit all of it together; errors as `ports.Work.commit`."""
        ...

    def hand_over(self, dispatch: Callable[[Sequence[Stored]], None]) -> Sequence[Stored]:
        """After `commit`: what was stored and is to be sent now; see `ports.Work.hand_over`."""
        ...

    def rollback(self) -> None:
        """Undo all of it; never raises."""
        ...

    async def spawn(self, call: Callable[[], T]) -> T:
        """Call in the place where an asynchronous connection may be used."""
        ...
