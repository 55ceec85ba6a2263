"""Making the tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import Connection, Index, inspect, select, text
from sqlalchemy.schema import CreateIndex, CreateSchema

from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.tables import VERSION, Tables

_NAMED: Final = "effectonce"
_ONE_AT_A_TIME: Final = 0x6566666563746F6E
"""The lock of those who create tables at one instant."""


def create_tables(connection: Connection, tables: Tables, dialect: Dialect) -> None:
    """Create what is missing, in the transaction of *connection*; what is there stays.

    Two processes may do it at once: SQLite's one writer, or a lock, puts them in a row.
    """
    with one_at_a_time(connection, dialect):
        if dialect.name != "sqlite":
            create_schema(connection, tables.metadata.schema)
        create_missing(connection, tables)


@contextmanager
def one_at_a_time(connection: Connection, dialect: Dialect) -> Iterator[None]:
    """A context in which nobody else makes or changes tables.

    MariaDB's lock is the session's, since its definitions commit by themselves: it is let go after the last one.
    """
    if dialect.name == "postgresql":
        connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": _ONE_AT_A_TIME})
    if dialect.name == "mariadb" and not connection.scalar(text("select get_lock(:lock, 30)"), {"lock": _NAMED}):
        raise Locked
    try:
        yield
        if dialect.name == "mariadb":
            connection.exec_driver_sql("commit")
    finally:
        if dialect.name == "mariadb":
            connection.scalar(text("select release_lock(:lock)"), {"lock": _NAMED})


def create_missing(connection: Connection, tables: Tables) -> None:
    """Create tables and indexes that are not there, and note the version where none is noted."""
    tables.metadata.create_all(connection)
    for index in missing_indexes(connection, tables):
        connection.execute(CreateIndex(index))
    if connection.execute(select(tables.meta.c.version)).first() is None:
        connection.execute(tables.meta.insert().values(version=VERSION))


def missing_indexes(connection: Connection, tables: Tables) -> list[Index]:
    """Indexes that the tables which are there should have, and do not."""
    inspector = inspect(connection)
    schema = tables.metadata.schema
    there = set(inspector.get_table_names(schema=schema))
    missing: list[Index] = []
    for table in tables.metadata.sorted_tables:
        if table.name in there:
            known = {each["name"] for each in inspector.get_indexes(table.name, schema=schema)}
            known |= {each["name"] for each in inspector.get_unique_constraints(table.name, schema=schema)}
            wanted = sorted(table.indexes, key=lambda index: str(index.name))
            missing += [index for index in wanted if index.name not in known and is_for(index, connection.dialect)]
    return missing


def is_for(index: Index, dialect: Any) -> bool:
    """Whether a database of this kind has this index: MariaDB has none over some of the rows."""
    return not (index.info.get("partial") and dialect.name in {"mariadb", "mysql"})


def create_schema(connection: Connection, name: str | None) -> None:
    """Ask first: one who may not create a schema may still use the one that is there."""
    if name is not None and not inspect(connection).has_schema(name):
        connection.execute(CreateSchema(name))
