"""Making the tables."""

from typing import Final

from sqlalchemy import Connection, inspect, select, text
from sqlalchemy.schema import CreateSchema

from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.tables import VERSION, Tables

_ONE_AT_A_TIME: Final = 0x6566666563746F6E
"""The lock of those who create tables at one instant."""


def create_tables(connection: Connection, tables: Tables, dialect: Dialect) -> None:
    """Create what is missing, in the transaction of *connection*; what is there stays.

    Two processes may do it at once: SQLite's one writer, or a lock, puts them in a row.
    """
    if dialect.name == "postgresql":
        connection.execute(text("select pg_advisory_xact_lock(:lock)"), {"lock": _ONE_AT_A_TIME})
        _create_schema(connection, tables.metadata.schema)
    tables.metadata.create_all(connection)
    if connection.execute(select(tables.meta.c.version)).first() is None:
        connection.execute(tables.meta.insert().values(version=VERSION))


def _create_schema(connection: Connection, name: str | None) -> None:
    """Ask first: one who may not create a schema may still use the one that is there."""
    if name is not None and not inspect(connection).has_schema(name):
        connection.execute(CreateSchema(name))
