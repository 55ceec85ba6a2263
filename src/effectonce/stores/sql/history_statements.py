"""The statements about the history, with the lock each takes and the index it uses."""

from typing import Final

from sqlalchemy import text

from effectonce.stores.sql.dialects import Dialect

_MINUTE: Final = 60_000_000
TRIM_BATCH: Final = 2_000


class HistoryStatements:
    """Compiled once for one dialect; *history*, *minutes* and *entries* are the tables' whole names."""

    def __init__(self, dialect: Dialect, *, history: str, minutes: str, entries: str) -> None:
        columns = "digest, name, cause, task, task_id, attempt, fence, times, facts"
        minute = f"({dialect.moment}) / {_MINUTE}"  # of whole numbers; MariaDB alone makes a fraction of it
        minute = f"floor({minute})" if dialect.name == "mariadb" else minute
        # Appends; no lock of another's.
        self.append = text(
            f"insert into {history} (at, {columns}) values ({dialect.moment} - :ago, :digest, :name, :cause, :task, "
            ":task_id, :attempt, :fence, :times, :facts)"
        )
        # The row's lock, for the length of a batch; primary key.
        own = minutes.rpartition(".")[2]
        upsert = f"on conflict (minute, name, cause) do update set number = {own}.number + :number"
        if dialect.name == "mariadb":
            upsert = "on duplicate key update number = number + :number"
        self.count = text(
            f"insert into {minutes} (minute, name, cause, number) values ({minute}, :name, :cause, :number) {upsert}"
        )
        # No lock; the index of digests.
        self.of = text(
            f"select id, at, {columns}, '' as shown from {history} where digest = :digest order by id desc limit :limit"
        )
        # No lock; primary keys of both.
        self.recent = text(
            f"select h.id, h.at, h.digest, h.name, h.cause, h.task, h.task_id, h.attempt, h.fence, h.times, h.facts, "
            f"coalesce(e.{dialect.key}, '') as shown from {history} h left join {entries} e on e.digest = h.digest "
            "where h.id < :before order by h.id desc limit :limit"
        )
        # No lock; primary key.
        self.tallies = text(
            f"select minute, name, cause, number from {minutes} where minute > {minute} - :minutes order by minute"
        )
        # No lock; both ends of the primary key.
        self.bounds = text(f"select min(id) as first, max(id) as last from {history}")
        # Row locks of what goes; a range of the primary key.
        self.trim = text(f"delete from {history} where id <= :last")
        # Row locks of what goes; a range of the primary key.
        self.trim_minutes = text(f"delete from {minutes} where minute < {minute} - :minutes")
