"""Reservations in a SQL database: one row a name, and its primary key lets one of many have it.

A reservation has an end. After it the row stays until the next one takes it over or the rescuer sweeps it away.
"""

from typing import Any

from sqlalchemy import Connection

from effectonce import crashpoints
from effectonce.ports import Conflict
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.rows import micros, storable
from effectonce.stores.sql.transactions import ShortTransactions


class SqlReservations(ShortTransactions):
    """The part of the SQL ledger that reserves names."""

    def reserve(self, name: bytes, holder: str, seconds: float) -> str:
        """See `ports.LedgerStore.reserve`."""
        crashpoints.crash_point("reserve.before")
        values = {"name": name, "holder": storable(holder), "us": micros(seconds)}
        found = self._settled(lambda connection: self._reserve_on(connection, values))
        crashpoints.crash_point("reserve.after")
        return found

    def reserve_on(self, connection: Connection, name: bytes, holder: str, seconds: float) -> str:
        """The same in an open transaction: the reservation stands or falls with it, and others wait for its end."""
        return self._reserve_on(connection, {"name": name, "holder": storable(holder), "us": micros(seconds)})

    def _reserve_on(self, connection: Connection, values: dict[str, Any]) -> str:
        statements = self.statements.reservations
        if any(connection.execute(each, values).rowcount == 1 for each in (statements.reserve, statements.take_over)):
            return str(values["holder"])
        holder = connection.execute(statements.holder, values).scalar()
        if holder is None:  # given back in between
            raise Conflict
        return str(holder)

    def give_back(self, name: bytes, holder: str) -> bool:
        """See `ports.LedgerStore.give_back`."""
        crashpoints.crash_point("give_back.before")
        values = {"name": name, "holder": storable(holder)}
        done = self._settled(
            lambda connection: bool(connection.execute(self.statements.reservations.give_back, values).rowcount)
        )
        crashpoints.crash_point("give_back.after")
        return done

    def forget_reservations(self) -> int:
        """See `ports.LedgerStore.forget_reservations`."""
        return self._settled(lambda connection: connection.execute(self.statements.reservations.sweep).rowcount)


class ReservingWork:
    """The part of a body's transaction that reserves names."""

    connection: Any
    _ledger: Any

    def reserve(self, name: bytes, holder: str, seconds: float) -> str:
        """See `ports.reservations.ReservationStore.reserve`; it commits with the work, or is undone with it."""
        with exempt():
            return str(self._ledger.reserve_on(self.connection, name, holder, seconds))
