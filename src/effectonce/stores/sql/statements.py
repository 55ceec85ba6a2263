"""Every statement of the ledger, by name: one round trip each, with the lock it takes and the index it uses.

No statement waits for a holder of the key: the try-lock comes first, or the row it touches is only ever locked for the
length of another short statement. The plan suite (``tests/plan``) holds each to its index.
"""

from collections.abc import Callable

from sqlalchemy import Table, TextClause, text

from effectonce.domain.claims import State
from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.history_statements import HistoryStatements
from effectonce.stores.sql.keeping_statements import KeepingStatements
from effectonce.stores.sql.outbox_statements import COLUMNS as OUTBOX_COLUMNS
from effectonce.stores.sql.outbox_statements import OutboxStatements, left_of
from effectonce.stores.sql.reservation_statements import ReservationStatements
from effectonce.stores.sql.schedule_statements import TERM_COLUMNS, TICK_COLUMNS
from effectonce.stores.sql.sighting_statements import SightingStatements
from effectonce.stores.sql.step_statements import MINE, STEP_COLUMNS, StepStatements
from effectonce.stores.sql.tables import CONTINUED, HANDED_OVER, HOLDS, NOT_KEPT, STEP_HOLDS, Tables

_COLUMNS = (
    "digest, {key}, state, fence, attempt, identity, task_id, fingerprint, lease_until, lease_ms, deaths, attempts, "
    "retries, flags, result, since"
)

CLAIMED, RELEASED, UNKNOWN, POISONED = (
    int(state) for state in (State.CLAIMED, State.RELEASED, State.UNKNOWN, State.POISONED)
)
ENDED = f"{State.COMPLETED:d}, {State.FAILED:d}"
WAITS = "state in (5, 6)"
"""Unknown or poisoned; the words of the index `effectonce_waiting`, without which SQLite does not use it."""


class Statements:
    """The statements for one dialect and one schema, compiled once; *quote* writes a table's whole name."""

    def __init__(self, dialect: Dialect, tables: Tables, quote: Callable[[Table], str]) -> None:
        entries, held, meta = quote(tables.entries), quote(tables.held), quote(tables.meta)
        steps = quote(tables.steps)
        self._columns = _COLUMNS.format(key=dialect.key)
        terms, ticks = quote(tables.terms), quote(tables.ticks)
        outbox, relays = quote(tables.outbox), quote(tables.relays)
        self._add_claiming(entries, outbox, dialect)
        self._add_settling(entries, dialect)
        self._add_renewing(entries, dialect)
        self._add_rescuing(entries, steps, dialect)
        self._add_holding(entries, held, dialect)
        self._add_looking(entries, dialect)
        self.steps = StepStatements(entries, steps, dialect)
        self.outbox = OutboxStatements(dialect, outbox=outbox, relays=relays)
        self.keeping = KeepingStatements(entries, held, steps, outbox, dialect)
        self.history = HistoryStatements(
            dialect, history=quote(tables.history), minutes=quote(tables.minutes), entries=entries
        )
        reservations = quote(tables.reservations)
        self.reservations = ReservationStatements(reservations, dialect)
        observed = quote(tables.observed)
        self.sightings = SightingStatements(observed, dialect)
        # Reads no row of the tables: fails when one or a column is missing.
        self.check = text(
            f"select max(version) as version, (select count(*) from (select {self._columns}, keep_until, keep_us, "
            f"follower from {entries} where 1 = 0) e) + (select count(*) from (select id, digest, mark, at, message "
            f"from {held} where 1 = 0) h) + (select count(*) from (select {STEP_COLUMNS}, mark from {steps} "
            f"where 1 = 0) s) + (select count(*) from (select {TERM_COLUMNS} from {terms} where 1 = 0) t) "
            f"+ (select count(*) from (select {TICK_COLUMNS} from {ticks} where 1 = 0) i) "
            f"+ (select count(*) from (select {OUTBOX_COLUMNS} from {outbox} where 1 = 0) o) "
            f"+ (select count(*) from (select seat, until, holder from {relays} where 1 = 0) r) "
            f"+ (select count(*) from (select name, holder, ends from {reservations} where 1 = 0) v) "
            f"+ (select count(*) from (select mark, seen_last from {observed} where 1 = 0) b) as none "
            f"from {meta}"
        )

    def _add_claiming(self, entries: str, outbox: str, dialect: Dialect) -> None:
        clock, lock = dialect.clock, dialect.lock
        # The try-lock; primary key.
        self.insert = _insert(entries, dialect, lock)
        # The same, for the transaction of a body.
        self.begin = _insert(entries, dialect, f"{lock} and {dialect.mortal}")
        # The try-lock alone, for the transaction of a body whose claim is committed; primary key.
        self.resume = text(
            f"select {lock} and {dialect.mortal} and exists (select 1 from {entries} where {MINE} "
            f"and state = {CLAIMED}) as mine"
        )
        # The try-lock, which tells a holder that is gone from one with an open transaction; primary key, and the
        # outbox's index of effects.
        self.meet = text(
            f"select {self._columns}, {clock} as now, {lock} as free, "
            f"exists (select 1 from {outbox} where {left_of(':digest')}) as unsent from {entries} "
            f"where digest = :digest{dialect.shared}"
        )
        self.lock = text(f"select {lock}")
        # No lock; no table of ours: what the database knows of its sessions.
        self.holder = None if dialect.holder is None else text(dialect.holder)
        # The try-lock, then the row's; primary key.
        self.take = _take(entries, dialect)

    def _add_settling(self, entries: str, dialect: Dialect) -> None:
        row = f"{entries}{dialect.by_key}"
        clock = dialect.clock
        # The row's lock; primary key. Also the entry that this transaction inserted as completed.
        self.complete = text(
            f"{dialect.soon}update {row} set state = :state, flags = :flags, result = :result, since = {clock}, "
            f"keep_until = {clock} + :keep_us where {MINE} and state in ({CLAIMED}, :inserted)"
        )
        # The row's lock; primary key.
        self.release = text(
            f"{dialect.soon}update {row} set {_since(clock, RELEASED)}, state = {RELEASED}, "
            f"deaths = case when :reset = 1 then 0 else deaths end, retries = :retries, "
            f"keep_until = {clock} + :keep_us "
            f"where {MINE} and state in ({CLAIMED}, {RELEASED})"
        )
        # The row's lock; primary key.
        self.follow = text(
            f"{dialect.soon}update {row} set follower = :follower where {MINE} and state = {CLAIMED} "
            "and (follower is null or follower = :follower)"
        )
        # No lock; primary key.
        self.is_followed = text(f"select 1 from {entries} where {MINE} and state = {CLAIMED}")
        # The row's lock; primary key.
        self.mark_continued = text(
            f"{dialect.soon}update {row} set flags = flags | {CONTINUED} "
            f"where digest = :digest and attempt = :attempt and state in ({ENDED})"
        )
        # The row's lock; primary key.
        self.mark_unknown = text(
            f"{dialect.soon}update {row} set {_since(clock, UNKNOWN)}, state = {UNKNOWN}, keep_until = null "
            "where digest = :digest and attempt = :attempt"
        )

    def _add_renewing(self, entries: str, dialect: Dialect) -> None:
        # Row locks; primary key.
        self.renew = (_renew_all if dialect.lists == "arrays" else _renew_one)(entries, dialect.clock)
        # Where `renew` gives no attempts back: asks for them, in the same transaction.
        self.renewed: TextClause | None = None

    def _add_rescuing(self, entries: str, steps: str, dialect: Dialect) -> None:
        row = f"{entries}{dialect.by_key}"
        clock = dialect.clock
        # The try-locks, so that holders with an open transaction are passed over; the index of claims.
        self.overdue = text(
            f"select {self._columns}, {clock} as now from {entries} where state = {CLAIMED} "
            f"and lease_until < {dialect.moment} and ({clock} - lease_until) / 1000 > lease_ms "
            f"and {dialect.lock_of_row} order by lease_until limit :limit{dialect.skip_locked}"
        )
        # `domain.steps.waits_for_a_person`.
        waits = (
            f"(exists (select 1 from {steps} s where s.digest = :digest and s.ended is null "
            f"and s.flags & {STEP_HOLDS} <> 0) or (flags & {HOLDS} <> 0 "
            f"and not exists (select 1 from {steps} s where s.digest = :digest)))"
        )
        # The row's lock; primary key, and that of the steps.
        self.rescue = text(
            f"update {row} set keep_until = case when {waits} then null else {clock} + keep_us end, "
            f"state = case when {waits} then {UNKNOWN} else {RELEASED} end, deaths = deaths + 1, since = {clock} "
            f"where {MINE} and state = {CLAIMED}"
        )

    def _add_holding(self, entries: str, held: str, dialect: Dialect) -> None:
        row = f"{entries}{dialect.by_key}"
        clock = dialect.clock
        # The try-lock, then the row's: a holder with an open transaction is alive, whatever its lease says;
        # primary key.
        self.poison = text(
            f"{dialect.at_once}update {row} set {_since(clock, POISONED)}, state = {POISONED}, keep_until = null "
            f"where {MINE} "
            f"and (state = {POISONED} or (state in ({CLAIMED}, {RELEASED}) and state = :seen)) and {dialect.lock}"
        )
        # No lock of the entry; its primary key, and the index of held messages.
        self.hold = text(
            dialect.insert_new(
                held,
                "digest, mark, at, message",
                f"select :digest, :mark, {clock}, :message "
                f"where exists (select 1 from {entries} where digest = :digest and state in ({UNKNOWN}, {POISONED}))",
                unique="digest, mark",
            )
        )
        # No lock; the index of held messages.
        self.held = text(f"select message from {held} where digest = :digest order by id")

    def _add_looking(self, entries: str, dialect: Dialect) -> None:
        seen = f"select {self._columns}, {dialect.clock} as now from {entries}"
        # No lock; primary key.
        self.read = text(f"{seen} where digest = :digest")
        # No lock; primary key, in its order.
        self.page = text(
            f"{seen} where digest > :after and (:state = 0 or state = :state) order by digest limit :limit"
        )
        # No lock; a range of the primary key, which bounds what is looked at.
        self.find = text(f"{seen} where digest > :after and digest <= :last and {dialect.key} = :key")
        # No lock; reads the whole table: for people.
        self.counts = text(f"select state, count(*) from {entries} group by state")
        # No lock; the index of what waits for a person, and the index of claims.
        self.standing = text(f"select state, count(*) from {entries} where {WAITS} group by state")
        self.in_flight = text(f"select count(*) from {entries} where state = {CLAIMED}")
        self.waiting_page = text(
            f"{seen} where {WAITS} and state = :state and digest > :after order by digest limit :limit"
        )
        self.claimed_page = text(f"{seen} where state = {CLAIMED} and digest > :after order by digest limit :limit")
        # No lock; a range of the primary key, which bounds what is looked at.
        self.search = text(
            f"{seen} where digest > :after and digest <= :last and (:state = 0 or state = :state) "
            f"and ({dialect.key} like :words escape '!' or task_id like :words escape '!') order by digest limit :limit"
        )


def _insert(entries: str, dialect: Dialect, condition: str) -> TextClause:
    """Insert an entry; no row when *condition* is false or an entry stands."""
    columns = (
        f"digest, {dialect.key}, state, fence, attempt, identity, task_id, fingerprint, lease_until, "
        "lease_ms, deaths, attempts, retries, flags, since, keep_until, keep_us"
    )
    values = (
        f"select :digest, :key, :state, {dialect.new_fence('c.now')}, :attempt, :identity, :task_id, :fingerprint, "
        "c.now + :lease_us, :lease_ms, 0, 1, :retries, :flags, c.now, c.now + :kept_us, :keep_us "
        f"from (select {dialect.clock} as now) c where {condition}"
    )
    statement = dialect.insert_new(entries, columns, values, unique="digest")
    return text(f"{dialect.at_once}{statement}{dialect.returning_fence}")


def _take(entries: str, dialect: Dialect) -> TextClause:
    """Take a standing entry as it was read."""
    row = f"{entries}{dialect.by_key}"
    clock = dialect.clock
    fence = dialect.new_fence(f"case when fence + 1 > {clock} then fence + 1 else {clock} end")
    return text(
        f"{dialect.at_once}update {row} set state = {CLAIMED}, fence = {fence}, attempt = :attempt, "
        "identity = :identity, task_id = :task_id, fingerprint = :fingerprint, "
        f"lease_until = {clock} + :lease_us, lease_ms = :lease_ms, deaths = :deaths, attempts = attempts + 1, "
        f"retries = :retries, flags = :flags, follower = null, result = null, since = {clock}, keep_until = null, "
        "keep_us = :keep_us "
        "where digest = :digest and fence = :old_fence and attempt = :old_attempt and state = :old_state "
        f"and (state <> {CLAIMED} or :reentry = 1 or lease_until <= {clock}) and {dialect.lock}"
        f"{dialect.returning_fence}"
    )


def _renew_all(entries: str, clock: str) -> TextClause:
    """Renew those that hold and have not ended, all at once."""
    return text(
        f"update {entries} set lease_until = {clock} + held.ms * 1000, lease_ms = held.ms "
        "from unnest(cast(:digests as bytea[]), cast(:fences as bigint[]), cast(:attempts as bytea[]), "
        "cast(:leases as bigint[])) as held (id, fenced, holder, ms) "
        f"where digest = held.id and fence = held.fenced and attempt = held.holder and state = {CLAIMED} "
        f"and lease_until > {clock} returning attempt"
    )


def _renew_one(entries: str, clock: str) -> TextClause:
    """Renew one; a database inside this process has no round trips to save."""
    return text(
        f"update {entries} set lease_until = {clock} + :lease_ms * 1000, lease_ms = :lease_ms "
        f"where {MINE} and state = {CLAIMED} and lease_until > {clock} returning attempt"
    )


def _since(clock: str, state: int) -> str:
    """A state that is written again began when it was first written.

    Stands before the state itself: MariaDB carries assignments out one after the other.
    """
    return f"since = case when state = {state} then since else {clock} end"


def flags_of(*, continued: bool, handed_over: bool, kept: bool) -> int:
    """Pack what is true of an outcome."""
    return (CONTINUED if continued else 0) | (HANDED_OVER if handed_over else 0) | (0 if kept else NOT_KEPT)
