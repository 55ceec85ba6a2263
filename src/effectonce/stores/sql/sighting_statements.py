"""The statements about sightings, with the lock each takes and the index it uses."""

from sqlalchemy import text

from effectonce.stores.sql.dialects import Dialect


class SightingStatements:
    """Compiled once for one dialect; *observed* is the table's whole name."""

    def __init__(self, observed: str, dialect: Dialect) -> None:
        clock = dialect.clock
        columns = f"mark, digest, seen_first, seen_last, times, again, would, task_id, task, {dialect.key}"
        # The row's lock; primary key.
        self.again = text(
            f"update {observed} set times = times + 1, seen_last = {clock}, task_id = :task_id where mark = :mark"
        )
        # The unique constraint of the primary key.
        values = (
            "select :mark, :digest, c.now, c.now, 1, :again, :would, :task_id, :task, :key "
            f"from (select {clock} as now) c where 1 = 1"
        )
        self.first = text(dialect.insert_new(observed, columns, values, unique="mark"))
        # No lock; reads the whole table: for people.
        self.latest = text(f"select {columns} from {observed} order by seen_last desc limit :limit")
        # Row locks; reads the whole table, now and then.
        self.sweep = text(f"delete from {observed} where seen_last < {dialect.moment} - :kept")
