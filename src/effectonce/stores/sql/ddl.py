"""The tables as plain facts and as SQL, for a framework that keeps its own book of migrations.

Both come from the one description in `tables`, so what a framework creates is what the ledger expects.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import URL, BigInteger, Column, Index, Integer, LargeBinary, SmallInteger, Table, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import CreateIndex, CreateTable, DropIndex, DropTable

from effectonce.stores.sql.tables import VERSION, tables

META: Final = "effectonce_meta"
"""The table that says which version the others have; it has one row, which must outlive a test that empties tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """One column. *kind*: ``"big"``, ``"small"``, ``"integer"``, ``"bytes"``, ``"text"``, or its type's name."""

    name: str
    kind: str
    length: int | None
    null: bool
    primary: bool
    counts_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """One index or constraint over columns, and the step that it came with: its table's, or a later one."""

    name: str
    columns: tuple[str, ...]
    unique: bool
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """One table, and the step that it came with."""

    name: str
    since: int
    columns: tuple[ColumnFacts, ...]
    indexes: tuple[IndexFacts, ...]


def described() -> Sequence[TableFacts]:
    """All tables, in the order in which they can be created."""
    return [_table(table) for table in tables(None).metadata.sorted_tables]


def creating(drivername: str, names: Sequence[str]) -> list[str]:
    """SQL that creates these tables, with the indexes that came with them, where they are missing.

    It notes the version too. Indexes that came later are `indexing`'s.
    """
    dialect = _dialect(drivername)
    statements = []
    for table in tables(None).metadata.sorted_tables:
        if table.name in names:
            statements.append(_sql(CreateTable(table, if_not_exists=True), dialect))
            statements += _indexing(table, dialect, lambda index: _since(index) == _since(index.table))
    if META in names:
        statements.append(
            f"insert into {META} (version) select {VERSION} where not exists (select 1 from {META})"  # noqa: S608 - constants
        )
    return statements


def indexing(drivername: str, names: Sequence[str]) -> list[str]:
    """SQL that creates these indexes where they are missing."""
    dialect = _dialect(drivername)
    return [
        statement
        for table in tables(None).metadata.sorted_tables
        for statement in _indexing(table, dialect, lambda index: index.name in names)
    ]


def unindexing(drivername: str, names: Sequence[str]) -> list[str]:
    """SQL that drops these indexes."""
    dialect = _dialect(drivername)
    return [
        _sql(DropIndex(index, if_exists=True), dialect)
        for table in tables(None).metadata.sorted_tables
        for index in _creatable(table, dialect)
        if index.name in names
    ]


def dropping(drivername: str, names: Sequence[str]) -> list[str]:
    """SQL that drops these tables."""
    dialect = _dialect(drivername)
    found = [table for table in reversed(tables(None).metadata.sorted_tables) if table.name in names]
    return [_sql(DropTable(table, if_exists=True), dialect) for table in found]


def _indexing(table: Table, dialect: Dialect, is_wanted: Callable[[Index], bool]) -> list[str]:
    indexes = sorted(filter(is_wanted, _creatable(table, dialect)), key=lambda index: str(index.name))
    return [_sql(CreateIndex(index, if_not_exists=True), dialect) for index in indexes]


def _since(element: Any) -> int:
    """The step that a table or an index came with."""
    table = getattr(element, "table", element)
    return int(element.info.get("since", table.info.get("since", 1)))


def _creatable(table: Table, dialect: Dialect) -> Iterator[Index]:
    """All but those that only databases with partial indices have."""
    has_partial = dialect.name not in {"mysql", "mariadb"}
    return (index for index in table.indexes if has_partial or not index.info.get("partial"))


def _dialect(drivername: str) -> Dialect:
    return URL.create(drivername).get_dialect()()


def _sql(element: CreateTable | CreateIndex | DropTable | DropIndex, dialect: Dialect) -> str:
    return str(element.compile(dialect=dialect)).strip()


def _table(table: Table) -> TableFacts:
    return TableFacts(
        name=table.name,
        since=_since(table),
        columns=tuple(_column(column) for column in table.columns),
        indexes=tuple(sorted(_indexes(table), key=lambda index: index.name)),
    )


def _column(column: Column[object]) -> ColumnFacts:
    return ColumnFacts(
        name=column.name,
        kind=_kind(column),
        length=getattr(column.type, "length", None),
        null=bool(column.nullable),
        primary=column.primary_key,
        counts_up=column.autoincrement is True,
    )


def _kind(column: Column[object]) -> str:
    kinds = {SmallInteger: "small", BigInteger: "big", Integer: "integer", LargeBinary: "bytes"}
    found = next((kind for type_, kind in kinds.items() if isinstance(column.type, type_)), None)
    return found or type(column.type).__name__.lower()


def _indexes(table: Table) -> Iterator[IndexFacts]:
    for index in table.indexes:
        yield IndexFacts(
            name=str(index.name),
            columns=tuple(column.name for column in index.columns),
            unique=bool(index.unique),
            since=_since(index),
        )
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            names = tuple(column.name for column in constraint.columns)
            name = str(constraint.name or "_".join((table.name, *names)))
            yield IndexFacts(name=name, columns=names, unique=True, since=_since(table))
