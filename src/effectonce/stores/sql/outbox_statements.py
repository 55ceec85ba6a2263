"""Every statement of the outbox, by name: one round trip each, with the lock it takes and the index it uses.

Nobody waits for a row: who takes messages passes over those that another one is taking.
"""

from typing import Final

from sqlalchemy import TextClause, bindparam, text

from effectonce.domain.outbox import Stage
from effectonce.stores.sql.dialects import Dialect

READY, PARKED, STUCK = (int(stage) for stage in (Stage.READY, Stage.PARKED, Stage.STUCK))

CHANNEL: Final = "effectonce_outbox"
"""What a relay listens to."""

_GIVEN: Final = {
    "effect": "bytea",
    "task": "text",
    "task_id": "text",
    "in_order": "text",
    "exchange": "text",
    "routing_key": "text",
    "content_type": "text",
    "content_encoding": "text",
    "headers": "text",
    "properties": "text",
    "declares": "text",
    "body": "bytea",
    "stage": "bigint",
    "due": "bigint",
    "grace": "bigint",
}
"""What a stored message brings, and PostgreSQL's type of each; `due` and `grace` become one column."""

_PLAIN: Final = tuple(name for name in _GIVEN if name not in {"due", "grace"})
COLUMNS: Final = f"id, due, since, tries, error, {', '.join(_PLAIN)}"


def left_of(effect: str) -> str:
    """The condition for what an effect has sent and whoever comes next may send for it; the index of effects."""
    return f"effect = {effect} and stage = {READY} and in_order is null"


class OutboxStatements:
    """The statements for one dialect; *outbox* and *relays* are the tables' whole names."""

    def __init__(self, dialect: Dialect, *, outbox: str, relays: str) -> None:
        self._arrays = dialect.lists == "arrays"
        self._add_storing(outbox, dialect)
        self._add_taking(outbox, dialect)
        self._add_looking(outbox, dialect)
        self._add_electing(relays, dialect.clock)

    def _add_storing(self, outbox: str, dialect: Dialect) -> None:
        # No lock that others wait for.
        self.store = (_store_all if self._arrays else _store_one)(outbox, dialect.clock)
        # Waits for whoever stores messages of the same order, until that one's transaction ends: so they are
        # numbered in the order of their commits. Where the database has one writer, there is nobody to wait for.
        self.keep_order = text("select pg_advisory_xact_lock(hashtextextended(:in_order, 0))") if self._arrays else None
        # Heard when the transaction commits.
        self.notify = text(f"notify {CHANNEL}") if self._arrays else None

    def _add_taking(self, outbox: str, dialect: Dialect) -> None:
        clock = dialect.clock
        skip = dialect.skip_locked
        first = (
            f"(in_order is null or not exists (select 1 from {outbox} e where e.in_order = o.in_order and e.id < o.id))"
        )
        seen = f"select {COLUMNS} from {outbox} o where"
        in_order = f"select {COLUMNS} from {outbox} o{dialect.by_due} where"
        # Row locks, none waited for; the index of due instants, and that of orders.
        self.due = text(
            f"{in_order} due <= {dialect.moment} and stage <> {STUCK} and {first} order by due, id limit :limit{skip}"
        )
        # The same, and reads what is parked: for draining.
        self.all_due = text(
            f"{in_order} (due <= {dialect.moment} or stage = {PARKED}) and stage <> {STUCK} and {first} "
            f"order by due, id limit :limit{skip}"
        )
        # Row locks, none waited for; the index of effects.
        self.due_of = text(
            f"{seen} {left_of(':effect')} and (due <= {dialect.moment} or :at_once = 1) order by id{skip}"
        )
        # Row locks that are held already; primary key.
        self.take = self._by_ids(
            f"update {outbox} set due = {clock} + :hold, tries = tries + 1, stage = {READY} where id"
        )
        # The rows' locks; primary key.
        self.strike = self._by_ids(f"delete from {outbox} where id")
        self.give_back = self._by_ids(f"update {outbox} set due = {clock} + :pause, tries = tries - 1 where id")
        # The row's lock; primary key. Nothing when somebody else has taken it since.
        self.refuse = text(
            f"update {outbox} set due = {clock} + :pause, stage = :stage, error = :error "
            "where id = :id and tries = :tries"
        )
        # Row locks; reads the whole table: for people.
        self.cancel = text(f"delete from {outbox} where stage = {PARKED} and task_id = :task_id")
        self.unstick = text(f"update {outbox} set due = {clock}, tries = 0, stage = {READY} where stage = {STUCK}")

    def _add_looking(self, outbox: str, dialect: Dialect) -> None:
        # No lock; reads the whole table, which is short: for people.
        self.waiting = text(
            f"select {COLUMNS} from {outbox} where :stage = -1 or stage = :stage order by due, id limit :limit"
        )
        self.depth = text(
            f"select coalesce(sum(case when stage = {READY} then 1 else 0 end), 0) as ready, "
            f"coalesce(sum(case when stage = {PARKED} then 1 else 0 end), 0) as parked, "
            f"coalesce(sum(case when stage = {STUCK} then 1 else 0 end), 0) as stuck, "
            f"min(case when stage <> {PARKED} then since when due <= {dialect.moment} then due end) as oldest, "
            f"{dialect.clock} as now from {outbox}"
        )

    def _add_electing(self, relays: str, clock: str) -> None:
        # The row's lock; primary key.
        self.sit = text(
            f"update {relays} set holder = :holder, until = {clock} + :seconds "
            f"where seat = :seat and (holder = :holder or until < {clock})"
        )
        # A seat that nobody has had yet. Two who want it at once: one of them fails, and asks again.
        self.sit_first = text(
            f"insert into {relays} (seat, holder, until) select :seat, :holder, c.now + :seconds "
            f"from (select {clock} as now) c where not exists (select 1 from {relays} where seat = :seat)"
        )
        # No lock; two or three rows.
        self.my_seat = text(f"select min(seat) from {relays} where holder = :holder and seat < :seats")
        # The row's lock.
        self.resign = text(f"update {relays} set until = 0 where holder = :holder")

    def _by_ids(self, start: str) -> TextClause:
        if self._arrays:
            return text(f"{start} = any(cast(:ids as bigint[]))")
        return text(f"{start} in :ids").bindparams(bindparam("ids", expanding=True))


def _store_all(outbox: str, clock: str) -> TextClause:
    """Store any number of messages, numbered as they come."""
    columns = ", ".join(_PLAIN)
    arrays = ", ".join(f"cast(:{name} as {kind}[])" for name, kind in _GIVEN.items())
    given = ", ".join(f"m.{name}" for name in _PLAIN)
    return text(
        f"insert into {outbox} (due, since, tries, {columns}) select coalesce(m.due, c.now + m.grace), c.now, 0, "
        f"{given} from (select {clock} as now) c, unnest({arrays}) with ordinality as m ({', '.join(_GIVEN)}, nth) "
        "order by m.nth returning id"
    )


def _store_one(outbox: str, clock: str) -> TextClause:
    """Store one; a database inside this process has no round trips to save."""
    columns, given = ", ".join(_PLAIN), ", ".join(f":{name}" for name in _PLAIN)
    return text(
        f"insert into {outbox} (due, since, tries, {columns}) select coalesce(:due, c.now + :grace), c.now, 0, {given} "
        f"from (select {clock} as now) c where 1 = 1 returning id"
    )
