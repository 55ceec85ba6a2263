"""The tables. Columns stand widest first, so that no row is padded.

How wide an entry is with its index, `tests/plan` measures.
"""

from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.mysql import BINARY, LONGBLOB, MEDIUMTEXT, VARBINARY, VARCHAR

VERSION = 1
"""Of the schema; a ledger with a smaller one is refused until it is upgraded."""

SEEN_SINCE: Final = 2
"""The version that brought the history; a ledger of version 1 works without it."""

WAITING_SINCE: Final = 3
"""The step that brought the index of what waits for a person; without it those statements read the whole table."""

CONTINUED, HANDED_OVER, NOT_KEPT, HOLDS = 1, 2, 4, 8
"""Bits of *flags*."""

STEP_HOLDS, STEP_NOT_KEPT, STEP_SKIPPED = 1, 2, 4
"""Bits of a step's *flags*."""

_MARIADB: Final = ("mariadb", "mysql")

DIGEST: Final = LargeBinary(16).with_variant(BINARY(16), *_MARIADB)
"""Exactly sixteen bytes, and usable in an index everywhere."""

IDENTITY: Final = LargeBinary(16).with_variant(VARBINARY(16), *_MARIADB)
SHORT: Final = LargeBinary(8).with_variant(VARBINARY(8), *_MARIADB)
BYTES: Final = LargeBinary().with_variant(LONGBLOB(), *_MARIADB)
"""Any number of bytes; in no index."""

WORDS: Final = Text().with_variant(MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_nopad_bin"), *_MARIADB)
"""Text of any length, compared letter by letter; in no index."""

ORDER: Final = String(190).with_variant(VARCHAR(190, charset="utf8mb4", collation="utf8mb4_nopad_bin"), *_MARIADB)
"""A short text, compared letter by letter, and usable in an index."""

ROWS_WITH_LOCKS: Final[dict[str, Any]] = {f"{name}_engine": "InnoDB" for name in _MARIADB}
"""The options of every table."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one database schema."""

    metadata: MetaData
    entries: Table
    held: Table
    steps: Table
    reservations: Table
    observed: Table
    meta: Table
    terms: Table
    ticks: Table
    outbox: Table
    relays: Table
    history: Table
    minutes: Table


def tables(schema: str | None) -> Tables:
    """Describe the tables under *schema*, None being the database's default."""
    metadata = MetaData(schema=schema)
    entries = Table(
        "effectonce_entries",
        metadata,
        Column("fence", BigInteger, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("lease_until", BigInteger, nullable=False),
        Column("keep_until", BigInteger),
        Column("keep_us", BigInteger),
        Column("lease_ms", Integer, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("retries", Integer, nullable=False),
        Column("state", SmallInteger, nullable=False),
        Column("flags", SmallInteger, nullable=False),
        Column("deaths", SmallInteger, nullable=False),
        Column("digest", DIGEST, primary_key=True),
        Column("identity", IDENTITY, nullable=False),
        Column("attempt", SHORT, nullable=False),
        Column("fingerprint", BYTES, nullable=False),
        Column("task_id", WORDS, nullable=False),
        Column("key", WORDS, nullable=False),
        Column("follower", IDENTITY),
        Column("result", BYTES),
        **ROWS_WITH_LOCKS,
    )
    _partial("effectonce_claimed", entries, "state = 1")
    _waiting(entries)
    held = Table(
        "effectonce_held",
        metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("digest", DIGEST, nullable=False),
        Column("mark", DIGEST, nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("message", BYTES, nullable=False),
        Index("effectonce_held_once", "digest", "mark", unique=True),
        **ROWS_WITH_LOCKS,
    )
    meta = Table(
        "effectonce_meta",
        metadata,
        Column("version", Integer, primary_key=True, autoincrement=False),
        **ROWS_WITH_LOCKS,
    )
    steps = _steps(metadata)
    others = (_terms(metadata), _ticks(metadata), _outbox(metadata), _relays(metadata))
    aside = (_reservations(metadata), _observed(metadata))
    return Tables(metadata, entries, held, steps, *aside, meta, *others, _history(metadata), _minutes(metadata))


def _reservations(metadata: MetaData) -> Table:
    return Table(
        "effectonce_reservations",
        metadata,
        Column("ends", BigInteger, nullable=False),
        Column("name", DIGEST, primary_key=True),
        Column("holder", WORDS, nullable=False),
        Index("effectonce_reserved_until", "ends"),
        **ROWS_WITH_LOCKS,
    )


def _observed(metadata: MetaData) -> Table:
    """What policies would have done in the mode ``observe``."""
    return Table(
        "effectonce_observed",
        metadata,
        Column("seen_first", BigInteger, nullable=False),
        Column("seen_last", BigInteger, nullable=False),
        Column("times", BigInteger, nullable=False),
        Column("again", SmallInteger, nullable=False),
        Column("mark", DIGEST, primary_key=True),
        Column("digest", DIGEST, nullable=False),
        Column("would", WORDS, nullable=False),
        Column("task_id", WORDS, nullable=False),
        Column("task", WORDS, nullable=False),
        Column("key", WORDS, nullable=False),
        **ROWS_WITH_LOCKS,
    )


def _steps(metadata: MetaData) -> Table:
    return Table(
        "effectonce_steps",
        metadata,
        Column("fence", BigInteger, nullable=False),
        Column("began", BigInteger, nullable=False),
        Column("ended", BigInteger),
        Column("flags", SmallInteger, nullable=False),
        Column("digest", DIGEST, primary_key=True),
        Column("mark", DIGEST, primary_key=True),
        Column("attempt", SHORT, nullable=False),
        Column("name", WORDS, nullable=False),
        Column("result", BYTES),
        **ROWS_WITH_LOCKS,
    )


def _terms(metadata: MetaData) -> Table:
    """Who leads what: one row a group of beats, which is never deleted, since fences must not go back."""
    return Table(
        "effectonce_terms",
        metadata,
        Column("fence", BigInteger, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("ends", BigInteger, nullable=False),
        Column("holder", IDENTITY, nullable=False),
        Column("digest", DIGEST, primary_key=True),
        Column("name", WORDS, nullable=False),
        Column("who", WORDS, nullable=False),
        **ROWS_WITH_LOCKS,
    )


def _ticks(metadata: MetaData) -> Table:
    """Instants that entries of schedules have had; each entry keeps its last ones, and its very last for ever."""
    ticks = Table(
        "effectonce_ticks",
        metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("instant", BigInteger, nullable=False),
        Column("fence", BigInteger, nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("following", BigInteger),
        Column("missed", Integer, nullable=False),
        Column("state", SmallInteger, nullable=False),
        Column("entry", DIGEST, nullable=False),
        Column("term", DIGEST, nullable=False),
        Column("name", WORDS, nullable=False),
        Index("effectonce_ticks_once", "entry", "instant", unique=True),
        **ROWS_WITH_LOCKS,
    )
    unmarked = text("state in (2, 5)")
    Index("effectonce_unmarked", ticks.c.term, ticks.c.state, postgresql_where=unmarked, sqlite_where=unmarked)
    return ticks


def _outbox(metadata: MetaData) -> Table:
    """Messages that wait. A sent one is deleted; one that somebody has taken is due later."""
    outbox = Table(
        "effectonce_outbox",
        metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("due", BigInteger, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("tries", Integer, nullable=False),
        Column("stage", SmallInteger, nullable=False),
        Column("effect", DIGEST),
        Column("task", WORDS, nullable=False),
        Column("task_id", WORDS, nullable=False),
        Column("in_order", ORDER),
        Column("exchange", WORDS, nullable=False),
        Column("routing_key", WORDS, nullable=False),
        Column("content_type", WORDS, nullable=False),
        Column("content_encoding", WORDS, nullable=False),
        Column("headers", WORDS, nullable=False),
        Column("properties", WORDS, nullable=False),
        Column("declares", WORDS, nullable=False),
        Column("body", BYTES, nullable=False),
        Column("error", WORDS),
        **ROWS_WITH_LOCKS,
    )
    Index("effectonce_outbox_due", outbox.c.due)
    Index("effectonce_outbox_effect", outbox.c.effect)
    ordered = text("in_order is not null")
    Index("effectonce_outbox_order", outbox.c.in_order, outbox.c.id, postgresql_where=ordered, sqlite_where=ordered)
    return outbox


def _relays(metadata: MetaData) -> Table:
    """The seats of the relays that the workers elect."""
    return Table(
        "effectonce_relays",
        metadata,
        Column("until", BigInteger, nullable=False),
        Column("seat", SmallInteger, primary_key=True, autoincrement=False),
        Column("holder", IDENTITY, nullable=False),
        **ROWS_WITH_LOCKS,
    )


def _history(metadata: MetaData) -> Table:
    """What was not ordinary, newest last. No effect needs it: a ledger without this table works."""
    return Table(
        "effectonce_history",
        metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
        Column("at", BigInteger, nullable=False),
        Column("fence", BigInteger, nullable=False),
        Column("times", Integer, nullable=False),
        Column("digest", DIGEST, nullable=False),
        Column("name", ORDER, nullable=False),
        Column("cause", ORDER, nullable=False),
        Column("task", WORDS, nullable=False),
        Column("task_id", WORDS, nullable=False),
        Column("attempt", WORDS, nullable=False),
        Column("facts", WORDS, nullable=False),
        Index("effectonce_history_of", "digest", "id"),
        info={"since": SEEN_SINCE},
        **ROWS_WITH_LOCKS,
    )


def _minutes(metadata: MetaData) -> Table:
    """How often what happened in each minute."""
    return Table(
        "effectonce_minutes",
        metadata,
        Column("number", BigInteger, nullable=False),
        Column("minute", BigInteger, primary_key=True, autoincrement=False),
        Column("name", ORDER, primary_key=True),
        Column("cause", ORDER, primary_key=True),
        info={"since": SEEN_SINCE},
        **ROWS_WITH_LOCKS,
    )


def _waiting(entries: Table) -> None:
    """An index over the few entries that wait for a person; MariaDB, which has no such index, uses that of claims."""
    where = text("state in (5, 6)")
    told = {"partial": True, "since": WAITING_SINCE}
    index = Index("effectonce_waiting", entries.c.state, postgresql_where=where, sqlite_where=where, info=told)
    index.ddl_if(callable_=lambda *_, dialect, **__: dialect.name not in _MARIADB)


def _partial(name: str, entries: Table, where: str) -> None:
    """An index over claims only: a completed entry, which is nearly all of them, is not in it.

    MariaDB has no such index and keeps all in it; there the state must stand before the time.
    """
    condition = text(where)
    Index(name, entries.c.state, entries.c.lease_until, postgresql_where=condition, sqlite_where=condition)
