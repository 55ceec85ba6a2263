"""The statements about reservations, with the lock each takes and the index it uses."""

from sqlalchemy import text

from effectonce.stores.sql.dialects import Dialect


class ReservationStatements:
    """Compiled once for one dialect; *reservations* is the table's whole name."""

    def __init__(self, reservations: str, dialect: Dialect) -> None:
        clock = dialect.clock
        # The unique constraint of the primary key: of two at the same instant the second sees the first one's row.
        values = f"select :name, :holder, c.now + :us from (select {clock} as now) c where 1 = 1"
        self.reserve = text(dialect.insert_new(reservations, "name, holder, ends", values, unique="name"))
        # The row's lock; primary key.
        self.take_over = text(
            f"update {reservations}{dialect.by_key} set holder = :holder, ends = {clock} + :us "
            f"where name = :name and ends <= {clock}"
        )
        # No lock; primary key.
        self.holder = text(f"select holder from {reservations} where name = :name and ends > {clock}")
        # The row's lock; primary key.
        self.give_back = text(f"delete from {reservations} where name = :name and holder = :holder")
        # Row locks; the index of ends.
        self.sweep = text(f"delete from {reservations} where ends <= {dialect.moment}")
