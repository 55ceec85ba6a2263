"""The tables. Columns stand widest first, so that no row is padded; an ordinary entry has 250 bytes with its index."""

from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    text,
)

VERSION = 1
"""Of the schema; a ledger with a smaller one is refused until it is upgraded."""

CONTINUED, HANDED_OVER, NOT_KEPT, HOLDS = 1, 2, 4, 8
"""Bits of *flags*."""

STEP_HOLDS, STEP_NOT_KEPT, STEP_SKIPPED = 1, 2, 4
"""Bits of a step's *flags*."""


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one database schema."""

    metadata: MetaData
    entries: Table
    held: Table
    steps: Table
    meta: Table


def tables(schema: str | None) -> Tables:
    """Describe the tables under *schema*, None being the database's default."""
    metadata = MetaData(schema=schema)
    entries = Table(
        "effectonce_entries",
        metadata,
        Column("fence", BigInteger, nullable=False),
        Column("since", BigInteger, nullable=False),
        Column("lease_until", BigInteger, nullable=False),
        Column("lease_ms", BigInteger, nullable=False),
        Column("keep_until", BigInteger),
        Column("keep_us", BigInteger),
        Column("state", SmallInteger, nullable=False),
        Column("flags", SmallInteger, nullable=False),
        Column("deaths", SmallInteger, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("retries", Integer, nullable=False),
        Column("digest", LargeBinary(16), primary_key=True),
        Column("identity", LargeBinary(16), nullable=False),
        Column("attempt", LargeBinary(8), nullable=False),
        Column("fingerprint", LargeBinary, nullable=False),
        Column("task_id", Text, nullable=False),
        Column("key", Text, nullable=False),
        Column("follower", LargeBinary(16)),
        Column("result", LargeBinary),
    )
    _partial("effectonce_claimed", entries, "state = 1")
    held = Table(
        "effectonce_held",
        metadata,
        Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
        Column("digest", LargeBinary(16), nullable=False),
        Column("mark", LargeBinary(16), nullable=False),
        Column("at", BigInteger, nullable=False),
        Column("message", LargeBinary, nullable=False),
        Index("effectonce_held_once", "digest", "mark", unique=True),
    )
    steps = _steps(metadata)
    meta = Table("effectonce_meta", metadata, Column("version", Integer, primary_key=True))
    return Tables(metadata, entries, held, steps, meta)


def _steps(metadata: MetaData) -> Table:
    return Table(
        "effectonce_steps",
        metadata,
        Column("fence", BigInteger, nullable=False),
        Column("began", BigInteger, nullable=False),
        Column("ended", BigInteger),
        Column("flags", SmallInteger, nullable=False),
        Column("digest", LargeBinary(16), primary_key=True),
        Column("mark", LargeBinary(16), primary_key=True),
        Column("attempt", LargeBinary(8), nullable=False),
        Column("name", Text, nullable=False),
        Column("result", LargeBinary),
    )


def _partial(name: str, entries: Table, where: str) -> None:
    """An index over claims only: a completed entry, which is nearly all of them, is not in it."""
    condition = text(where)
    Index(name, entries.c.lease_until, postgresql_where=condition, sqlite_where=condition)
