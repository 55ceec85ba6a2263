"""The history of a SQL ledger: what was not ordinary, and how often what happened in each minute.

It stands beside the effects and never in their way: it is written in short transactions of its own, off the path of
the body, and a ledger whose tables were made before it has none until ``schema create`` makes it.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection

from effectonce.ports.history import Happened, Tally
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.history_statements import TRIM_BATCH
from effectonce.stores.sql.rows import storable

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

_LAST: Final = 2**62
_LONGEST: Final = 190
"""Characters of a name or a cause, which are in an index."""


class SqlHistory:
    """See `ports.history.HistoryStore`."""

    def __init__(self, ledger: "SqlLedger") -> None:
        self._ledger = ledger

    def record(self, happened: Sequence[Happened], counted: Mapping[tuple[str, str], int]) -> None:
        """See `ports.history.HistoryStore.record`."""
        statements = self._ledger.statements.history
        rows = [_values(each) for each in happened]
        counts = [
            {"name": name[:_LONGEST], "cause": cause[:_LONGEST], "number": number}
            for (name, cause), number in sorted(counted.items())  # one order for all writers: no deadlocks
        ]

        def record(connection: Connection) -> None:
            if rows:
                connection.execute(statements.append, rows)
            for each in counts:
                connection.execute(statements.count, each)

        self._ledger.settle(record)

    def of(self, digest: bytes, *, limit: int) -> Sequence[Happened]:
        """See `ports.history.HistoryStore.of`."""
        found = self._rows(self._ledger.statements.history.of, {"digest": digest, "limit": limit})
        return found[::-1]

    def recent(self, *, limit: int, before: int | None = None) -> Sequence[Happened]:
        """See `ports.history.HistoryStore.recent`."""
        values = {"limit": limit, "before": _LAST if before is None else before}
        return self._rows(self._ledger.statements.history.recent, values)

    def tallies(self, *, minutes: int) -> Sequence[Tally]:
        """See `ports.history.HistoryStore.tallies`."""
        statement = self._ledger.statements.history.tallies
        return self._ledger.look(
            lambda connection: [
                Tally(minute=int(row.minute), name=row.name, cause=row.cause, number=row.number)
                for row in connection.execute(statement, {"minutes": minutes})
            ]
        )

    def trim(self, *, rows: int, minutes: int) -> int:
        """See `ports.history.HistoryStore.trim`."""
        statements = self._ledger.statements.history
        first, last = self._ledger.look(lambda connection: tuple(connection.execute(statements.bounds).one()))
        self._ledger.settle(lambda connection: connection.execute(statements.trim_minutes, {"minutes": minutes}))
        removed = 0
        while last is not None and first <= last - rows:
            first = min(first + TRIM_BATCH, last - rows + 1)
            removed += self._trim(first - 1)
        return removed

    def _trim(self, last: int) -> int:
        statement = self._ledger.statements.history.trim
        return self._ledger.settle(lambda connection: int(connection.execute(statement, {"last": last}).rowcount))

    def _rows(self, statement: Any, values: dict[str, Any]) -> list[Happened]:
        return self._ledger.look(
            lambda connection: [_happened(row) for row in connection.execute(statement, values)],
        )


def _values(happened: Happened) -> dict[str, Any]:
    return {
        "digest": happened.digest,
        "name": happened.name[:_LONGEST],
        "cause": happened.cause[:_LONGEST],
        "task": storable(happened.task),
        "task_id": storable(happened.task_id),
        "attempt": storable(happened.attempt),
        "fence": happened.fence,
        "times": happened.times,
        "ago": round(happened.ago * MICROS),
        "facts": json.dumps(dict(happened.facts), default=str),
    }


def _happened(row: Any) -> Happened:
    return Happened(
        id=row.id,
        at=row.at / MICROS,
        digest=bytes(row.digest),
        name=row.name,
        cause=row.cause,
        task=row.task,
        task_id=row.task_id,
        attempt=row.attempt,
        fence=row.fence,
        times=row.times,
        facts=json.loads(row.facts),
        key=row.shown,
    )
