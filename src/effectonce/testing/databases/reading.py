"""Reading all rows of a database behind SQLAlchemy.

A proof reads as often as it runs the task. What its tables look like is asked for again only when it may have changed.
"""

from importlib import import_module
from typing import Any

from effectonce.testing.databases import OURS, Rows


class Reader:
    """Reads the database of *engine*."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._described: Any = None
        self._shapes: list[tuple[Any, set[str]]] = []

    def rows(self) -> Rows:
        """All rows of all tables; columns that number themselves, and those that point to them, are left out."""
        sa = import_module("sqlalchemy")
        with self._engine.connect() as connection:
            described = _description(connection)
            if described is None or described != self._described:
                self._described, self._shapes = described, _shapes(connection)
            rows = {
                table.name: [
                    {key: value for key, value in row.items() if key not in left_out}
                    for row in connection.execute(sa.select(table)).mappings()
                ]
                for table, left_out in self._shapes
            }
            connection.rollback()
        return rows


def _description(connection: Any) -> Any:
    """What tells one shape of the tables from another, where asking for it is cheaper than looking at each table."""
    if connection.dialect.name != "sqlite":
        return None
    return connection.exec_driver_sql("select name, sql from sqlite_master order by name").all()


def _shapes(connection: Any) -> list[tuple[Any, set[str]]]:
    """Each table with the columns that are left out."""
    sa = import_module("sqlalchemy")
    inspector = sa.inspect(connection)
    names = [name for name in inspector.get_table_names() if not name.startswith(OURS)]
    numbered = {(name, column) for name in names for column in _numbered(inspector, name)}
    return [
        (
            sa.Table(name, sa.MetaData(), autoload_with=connection),
            {column for table, column in numbered if table == name} | _pointing(inspector, name, numbered),
        )
        for name in names
    ]


def _numbered(inspector: Any, name: str) -> list[str]:
    """The primary key, where the database gives its numbers: a statement that was rolled back may have used one up."""
    sa = import_module("sqlalchemy")
    key = inspector.get_pk_constraint(name)["constrained_columns"]
    columns = {column["name"]: column for column in inspector.get_columns(name)}
    if len(key) != 1 or not isinstance(columns[key[0]]["type"], sa.Integer):
        return []
    column = columns[key[0]]
    counts = inspector.dialect.name == "sqlite" or column.get("identity") or "nextval" in str(column.get("default"))
    return key if counts or column.get("autoincrement") is True else []


def _pointing(inspector: Any, name: str, numbered: set[tuple[str, str]]) -> set[str]:
    return {
        column
        for foreign in inspector.get_foreign_keys(name)
        for column, referred in zip(foreign["constrained_columns"], foreign["referred_columns"], strict=False)
        if (foreign["referred_table"], referred) in numbered
    }
