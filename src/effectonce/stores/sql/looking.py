"""What `SqlLedger` reads of its entries. Nothing here writes; only `counts` is one statement over the whole table."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection, TextClause

from effectonce.domain.claims import Entry, State
from effectonce.stores.sql.rows import entry_of
from effectonce.stores.sql.transactions import ShortTransactions

FIND_LOOK: Final = 10_000
"""Entries that one statement looks at for a readable key."""

MOST_FOUND: Final = 100
"""Entries with one readable key that are told."""

_LAST: Final = b"\xff" * 16


class Looking(ShortTransactions):
    """The part of the SQL ledger that answers questions about entries."""

    def read(self, digest: bytes) -> Entry | None:
        """See `ports.LedgerStore.read`."""
        return self._looked(lambda connection: self.entry_on(connection, digest)[0])

    def entry_on(self, connection: Connection, digest: bytes) -> tuple[Entry | None, int]:
        """The entry as this connection sees it, and the database's clock."""
        row = connection.execute(self.statements.read, {"digest": digest}).first()
        return (None, 0) if row is None else (entry_of(row), row.now)

    def find(self, key: str) -> Sequence[Entry]:
        """See `ports.LedgerStore.find`; a key is looked for in pieces of the table, each in a short statement."""
        with suppress(ValueError):
            entry = self.read(bytes.fromhex(key))
            if entry is not None:
                return [entry]
        found: list[Entry] = []
        after: bytes | None = b""
        while after is not None and len(found) < MOST_FOUND:
            piece, after = self._looked(partial(self._find_on, key=key, after=after))
            found += piece
        return found[:MOST_FOUND]

    def _find_on(self, connection: Connection, *, key: str, after: bytes) -> tuple[list[Entry], bytes | None]:
        """What has this key in the next piece, and where that ends; None: it was the last."""
        end, last = self.page_on(connection, FIND_LOOK, after)
        rows = connection.execute(self.statements.find, {"key": key, "after": after, "last": last})
        return [entry_of(row) for row in rows], end

    def entries(self, *, state: State | None, limit: int, after: bytes | None = None) -> Sequence[Entry]:
        """See `ports.LedgerStore.entries`; few entries stand open, and an index has them."""
        values = {"state": int(state or 0), "after": after or b"", "limit": max(limit, 0)}
        return self._entries(self.page_of(state), values)

    def page_of(self, state: State | None) -> TextClause:
        """The statement that reads a page of entries in *state*, in the order of their digests."""
        match state:
            case State.CLAIMED:
                return self.statements.claimed_page
            case State.UNKNOWN | State.POISONED:
                return self.statements.waiting_page
            case _:
                return self.statements.page

    def counts(self) -> Mapping[State, int]:
        """See `ports.LedgerStore.counts`."""
        return self._looked(
            lambda connection: {State(state): number for state, number in connection.execute(self.statements.counts)}
        )

    def page_on(self, connection: Connection, limit: int, after: bytes) -> tuple[bytes | None, bytes]:
        """Where the next *limit* entries end, None where these are the last; and the last digest they can have."""
        values = {"after": after, "skip": max(limit, 1) - 1}
        found = connection.execute(self.statements.keeping.page_end, values).scalar()
        end = None if found is None else bytes(found)
        return end, end or _LAST

    def _entries(self, statement: Any, values: dict[str, Any]) -> list[Entry]:
        return self._looked(lambda connection: [entry_of(row) for row in connection.execute(statement, values)])
