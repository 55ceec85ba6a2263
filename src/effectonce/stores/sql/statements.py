"""Every statement of the ledger, by name: one round trip each, with the lock it takes and the index it uses.

No statement waits for a holder of the key: the try-lock comes first, or the row it touches is only ever locked for the
length of another short statement. The plan suite holds each to its index.
"""

from typing import Any

from sqlalchemy import TextClause, text

from effectonce.domain.claims import State
from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.tables import CONTINUED, NOT_KEPT, Tables

_COLUMNS = (
    "digest, key, state, fence, attempt, identity, task_id, fingerprint, lease_until, lease_ms, deaths, attempts, "
    "retries, flags, result, since"
)
_HELD = "digest = :digest and fence = :fence and attempt = :attempt and state = 1"


class Statements:
    """The statements for one dialect and one schema, compiled once."""

    def __init__(self, dialect: Dialect, tables: Tables) -> None:
        entries, held = tables.entries.fullname, tables.held.fullname
        clock, lock = dialect.clock, dialect.lock
        skip = " for update skip locked" if dialect.name == "postgresql" else ""
        self.insert = _insert(entries, clock, lock)
        self.lock = text(f"select {lock}")
        self.read = text(f"select {_COLUMNS}, {clock} as now from {entries} where digest = :digest")
        self.take = _take(entries, clock, lock)
        self.complete = _complete(entries, clock)
        self.release = _release(entries, clock)
        self.renew = _renew(entries, clock)
        self.poison = _poison(entries, clock, lock)
        self.mark_unknown = _update(
            entries, clock, "state = 5, keep_until = null", "digest = :digest and attempt = :attempt"
        )
        # Row lock for the statement; primary key.
        self.mark_continued = text(
            f"update {entries} set flags = flags | {CONTINUED} "
            f"where digest = :digest and attempt = :attempt and state in (2, 3)"
        )
        # No lock; the index of claims.
        self.overdue = text(
            f"select {_COLUMNS}, {clock} as now from {entries} "
            f"where state = 1 and lease_until < {clock} - lease_ms * 1000 order by lease_until limit :limit{skip}"
        )
        # The try-lock, so that a holder with an open transaction is left alone; primary key.
        self.rescue = _update(entries, clock, "state = 4, deaths = deaths + 1", f"{_HELD} and {lock}", keep=True)
        # No lock; primary key order.
        self.page = text(
            f"select {_COLUMNS}, {clock} as now from {entries} "
            "where digest > :after and (:state = 0 or state = :state) order by digest limit :limit"
        )
        # No lock; reads the whole table: for people.
        self.find = text(
            f"select {_COLUMNS}, {clock} as now from {entries} where key = :key or digest = :digest limit 100"
        )
        self.counts = text(f"select state, count(*) from {entries} group by state")
        # One insert; the index of held messages.
        self.hold = text(
            f"insert into {held} (digest, at, message) select :digest, {clock}, :message "
            f"where not exists (select 1 from {held} where digest = :digest and message = :message)"
        )
        self.held = text(f"select message from {held} where digest = :digest order by id")
        self.version = text(f"select max(version) from {tables.meta.fullname}")
        # Reads no row: fails when a column is missing.
        self.probe = text(f"select {_COLUMNS}, keep_until from {entries} where 1 = 0")


def _insert(entries: str, clock: str, lock: str) -> TextClause:
    """Insert an entry under the try-lock; no row when it is held or an entry stands. Primary key."""
    return text(
        f"insert into {entries} (digest, key, state, fence, attempt, identity, task_id, fingerprint, lease_until, "
        "lease_ms, deaths, attempts, retries, flags, since, keep_until) "
        f"select :digest, :key, :state, c.now, :attempt, :identity, :task_id, :fingerprint, c.now + :lease_us, "
        f":lease_ms, 0, 1, :retries, 0, c.now, c.now + :keep_us from (select {clock} as now) c "
        f"where {lock} on conflict (digest) do nothing returning fence"
    )


def _take(entries: str, clock: str, lock: str) -> TextClause:
    """Take a standing entry as it was read, under the try-lock. Primary key, one row."""
    return text(
        f"update {entries} set state = {State.CLAIMED:d}, "
        f"fence = case when fence + 1 > {clock} then fence + 1 else {clock} end, attempt = :attempt, "
        "identity = :identity, task_id = :task_id, fingerprint = :fingerprint, "
        f"lease_until = {clock} + :lease_us, lease_ms = :lease_ms, deaths = :deaths, attempts = attempts + 1, "
        f"retries = :retries, flags = 0, result = null, since = {clock}, keep_until = null "
        "where digest = :digest and fence = :old_fence and attempt = :old_attempt and state = :old_state "
        f"and (state <> {State.CLAIMED:d} or :reentry = 1 or lease_until <= {clock}) and {lock} returning fence"
    )


def _complete(entries: str, clock: str) -> TextClause:
    """End a claim by fence and attempt; also the entry that this transaction inserted as completed. Primary key."""
    return text(
        f"update {entries} set state = :state, flags = :flags, result = :result, since = {clock}, "
        f"keep_until = {clock} + :keep_us "
        "where digest = :digest and fence = :fence and attempt = :attempt and state in (1, :inserted)"
    )


def _release(entries: str, clock: str) -> TextClause:
    """Let a key go, keeping its fence. Primary key."""
    return text(
        f"update {entries} set state = {State.RELEASED:d}, deaths = case when :reset = 1 then 0 else deaths end, "
        f"retries = :retries, since = case when state = {State.RELEASED:d} then since else {clock} end, "
        f"keep_until = {clock} + :keep_us "
        f"where digest = :digest and fence = :fence and attempt = :attempt and state in (1, {State.RELEASED:d})"
    )


def _poison(entries: str, clock: str, lock: str) -> TextClause:
    """Set an entry aside that has not moved since it was seen, or stands aside already. Primary key.

    Under the try-lock: a holder with an open transaction is alive, whatever its lease says.
    """
    return text(
        f"update {entries} set state = {State.POISONED:d}, keep_until = null, "
        f"since = case when state = {State.POISONED:d} then since else {clock} end "
        "where digest = :digest and fence = :fence and attempt = :attempt "
        f"and (state = {State.POISONED:d} or (state in (1, 4) and state = :seen)) and {lock}"
    )


def _renew(entries: str, clock: str) -> Any:
    """Renew those of one process that still hold and have not ended, all at once. Primary key; row locks in order."""
    return (
        f"update {entries} set lease_until = {clock} + ({{leases}}) * 1000, lease_ms = {{leases}} "
        f"where state = 1 and lease_until > {clock} and ({{held}}) returning attempt"
    )


def _update(entries: str, clock: str, change: str, where: str, *, keep: bool = False) -> TextClause:
    """Change one entry's state. Primary key."""
    kept = f", keep_until = {clock} + :keep_us" if keep else ""
    return text(f"update {entries} set {change}, since = {clock}{kept} where {where}")


def flags_of(*, continued: bool, handed_over: bool, kept: bool) -> int:
    """Pack what is true of an outcome."""
    return (CONTINUED if continued else 0) | (2 if handed_over else 0) | (0 if kept else NOT_KEPT)
