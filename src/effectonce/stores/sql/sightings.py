"""Sightings in a SQL database: one row for what would have happened to calls of one key, with a count."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from effectonce.domain.sightings import KEPT, Sighting, Would
from effectonce.ports import Conflict
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.rows import micros, storable
from effectonce.stores.sql.transactions import ShortTransactions


class SqlSightings(ShortTransactions):
    """The part of the SQL ledger that counts what was only observed."""

    def see(self, sighting: Sighting) -> None:
        """See `ports.sightings.SightingStore.see`."""
        values = {
            "mark": sighting.mark,
            "digest": sighting.digest,
            "again": int(sighting.again),
            "would": sighting.would.name.lower(),
            "task_id": storable(sighting.task_id),
            "task": storable(sighting.task),
            "key": storable(sighting.key),
        }
        self._settled(lambda connection: self._see_on(connection, values))

    def _see_on(self, connection: Connection, values: dict[str, Any]) -> None:
        statements = self.statements.sightings
        if not any(connection.execute(each, values).rowcount == 1 for each in (statements.again, statements.first)):
            raise Conflict  # another one has seen it first, just now

    def sightings(self, *, limit: int) -> Sequence[Sighting]:
        """See `ports.sightings.SightingStore.sightings`."""
        latest = self.statements.sightings.latest
        return self._looked(
            lambda connection: [_sighting_of(row) for row in connection.execute(latest, {"limit": limit})]
        )

    def forget_sightings(self) -> int:
        """See `ports.sightings.SightingStore.forget_sightings`."""
        values = {"kept": micros(KEPT)}
        return self._settled(
            lambda connection: int(connection.execute(self.statements.sightings.sweep, values).rowcount)
        )


def _sighting_of(row: Any) -> Sighting:
    return Sighting(
        digest=bytes(row.digest),
        key=row.key,
        task=row.task,
        task_id=row.task_id,
        would=Would[row.would.upper()],
        again=bool(row.again),
        times=row.times,
        first=row.seen_first / MICROS,
        last=row.seen_last / MICROS,
    )
