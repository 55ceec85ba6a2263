"""The outbox of a host: what is sent beside a block of the host's commits with that block.

The host does not tell when it is about to commit, so messages are stored while its block is still open: at the end of
the ``once.outbox()`` that was begun inside the block, or at once where the block was begun inside ``once.outbox()``.
Either way the rows are undone with the block or the savepoint that they belong to, and are sent after its commit.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from effectonce.domain.outbox import Message
from effectonce.errors import LedgerUnavailable
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.outbox import SqlOutbox
from effectonce.stores.sql.sessions import Dispatch

if TYPE_CHECKING:
    from effectonce.stores.sql.hosted import HostedLedger


class HostedOutbox(SqlOutbox):
    """The outbox in a host's database."""

    _ledger: "HostedLedger"

    def __init__(self, ledger: "HostedLedger") -> None:
        super().__init__(ledger)

    def here(self, *, dispatch: Dispatch) -> "HostedBatch":
        """See `ports.outbox.OutboxStore.here`."""
        return HostedBatch(self, self._ledger, dispatch)

    def around(self, *, dispatch: Dispatch) -> "HostedBatch | None":
        """See `ports.outbox.OutboxStore.around`: stored at once, in the block and the savepoint that are open."""
        if not self._ledger.host.is_callers():
            return None
        return HostedBatch(self, self._ledger, dispatch, at_once=True)


class HostedBatch:
    """Messages of one ``once.outbox()``; see `ports.outbox.Batch`."""

    def __init__(
        self, outbox: HostedOutbox, ledger: "HostedLedger", dispatch: Dispatch, *, at_once: bool = False
    ) -> None:
        self._outbox = outbox
        self._ledger = ledger
        self._dispatch = dispatch
        self._began_inside = ledger.host.is_open() and not at_once
        self._sent: list[tuple[Message, Callable[[], bool]]] = []

    def send(self, message: Message) -> None:
        """Let *message* be stored with the block that is open now; without one, at the end."""
        if self._ledger.host.is_open() and not self._began_inside:
            self._store_in_block([message])
        else:
            self._sent.append((message, self._ledger.host.mark()))

    def commit(self) -> None:
        """Store what no savepoint has taken along."""
        messages = [message for message, lives in self._sent if lives()]
        if not messages:
            return
        if self._ledger.host.is_open():
            self._store_in_block(messages)
            return
        stored = self._outbox.store(messages)
        if stored:
            self._dispatch(stored)

    def _store_in_block(self, messages: Sequence[Message]) -> None:
        ledger = self._ledger
        _ = ledger.statements
        try:
            with ledger.errors(), ledger.joined() as connection:
                stored = self._outbox.store_on(connection, messages)
        except Locked as error:
            raise LedgerUnavailable(ledger=ledger.name, reason="another writer holds it") from error
        if stored:
            ledger.host.on_commit(lambda: self._dispatch(stored))
