"""Models and migration operations, made from the description of the ledger's tables.

The tables are created by the ledger's own SQL; the models are there so that Django knows them: ``flush`` and test cases
empty them, ``makemigrations`` finds nothing to do, and a test run without migrations creates them.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from django.db import migrations, models, router
from django.db.migrations.operations.base import Operation

from effectonce.contrib.django.host import DjangoHost
from effectonce.stores.sql.ddl import (
    META,
    ColumnFacts,
    IndexFacts,
    TableFacts,
    creating,
    described,
    dropping,
    indexing,
    unindexing,
)

LABEL: Final = "effectonce"


class Bytes(models.BinaryField):
    """Bytes that MySQL and MariaDB can index: of a fixed length where there is one."""

    def db_type(self, connection: Any) -> str:
        """The column's type."""
        if connection.vendor == "mysql" and self.max_length:
            return f"binary({self.max_length})"
        return str(super().db_type(connection))


_FIELDS: Final[dict[str, type[models.Field]]] = {
    "big": models.BigIntegerField,
    "small": models.SmallIntegerField,
    "integer": models.IntegerField,
    "text": models.TextField,
    "bytes": Bytes,
    "boolean": models.BooleanField,
    "float": models.FloatField,
    "double": models.FloatField,
}


def modelled() -> list[TableFacts]:
    """The tables that have a model: all but the one that tells the version, which no test may empty."""
    return [table for table in described() if table.name != META]


def class_name(table: TableFacts) -> str:
    """``effectonce_entries`` is ``Entries``."""
    return "".join(word.capitalize() for word in table.name.removeprefix(f"{LABEL}_").split("_"))


def fields(table: TableFacts) -> list[tuple[str, Any]]:
    """Names and fields of a table's model."""
    keys = [column.name for column in table.columns if column.primary]
    found = [(column.name, _field(column, alone=len(keys) == 1)) for column in table.columns]
    if len(keys) == 1:
        return found
    told = {"blank": True, "editable": False, "primary_key": True, "serialize": False}  # as Django itself notes it
    return [("pk", models.CompositePrimaryKey(*keys, **told)), *found]


def options(table: TableFacts, indexes: Sequence[IndexFacts] | None = None) -> dict[str, Any]:
    """The ``Meta`` of a table's model, with these of its indexes; all, unless said."""
    words = table.name.replace("_", " ")
    indexes = table.indexes if indexes is None else indexes
    return {
        "db_table": table.name,
        "verbose_name": words,
        "verbose_name_plural": words,
        "default_permissions": (),
        "indexes": [_index(each) for each in indexes if not each.unique],
        "constraints": [_unique(each) for each in indexes if each.unique],
    }


def operations(step: int) -> list[Operation]:
    """What the migration number *step* does: create the tables and indexes that came with it, if they are not there.

    A later step never changes an earlier one: databases that made that one would not get what was added to it.
    """
    names = [table.name for table in described() if table.since == step]
    states: list[Operation] = [
        migrations.CreateModel(class_name(table), fields(table), options(table, _indexes(table, step)))
        for table in modelled()
        if table.since == step
    ]
    late = [(table, index) for table in modelled() if table.since < step for index in _indexes(table, step)]
    states += [migrations.AddIndex(class_name(table), _index(index)) for table, index in late]
    made: list[Operation] = [CreateTables(names)] if names else []
    made += [CreateIndexes([index.name for _, index in late])] if late else []
    return [migrations.SeparateDatabaseAndState(database_operations=made, state_operations=states)]


class LedgersOwn(Operation):
    """Makes something of the ledger by the ledger's own SQL, in the databases that a router allows."""

    reversible = True
    reduces_to_sql = True
    what: str
    making: Callable[[str, Sequence[str]], list[str]]
    undoing: Callable[[str, Sequence[str]], list[str]]

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: the models stand beside this operation."""

    def database_forwards(self, app_label: str, schema_editor: Any, _from_state: Any, _to_state: Any) -> None:
        """Create them."""
        self._execute(app_label, schema_editor, type(self).making)

    def database_backwards(self, app_label: str, schema_editor: Any, _from_state: Any, _to_state: Any) -> None:
        """Drop them."""
        self._execute(app_label, schema_editor, type(self).undoing)

    def describe(self) -> str:
        """Say what is created."""
        return f"Create the ledger's {self.what} {', '.join(self.names)}"

    def _execute(self, app_label: str, schema_editor: Any, made: Callable[[str, Sequence[str]], list[str]]) -> None:
        if router.allow_migrate(schema_editor.connection.alias, app_label):
            for statement in made(drivername(schema_editor), self.names):
                schema_editor.execute(statement, params=None)


class CreateTables(LedgersOwn):
    """Creates tables, with the indexes that came with them."""

    what = "tables"
    making = staticmethod(creating)
    undoing = staticmethod(dropping)


class CreateIndexes(LedgersOwn):
    """Creates indexes of tables that an earlier step has made."""

    what = "indexes"
    making = staticmethod(indexing)
    undoing = staticmethod(unindexing)


def drivername(schema_editor: Any) -> str:
    """What SQLAlchemy calls the database of a schema editor."""
    return DjangoHost(schema_editor.connection.alias).drivername


def _field(column: ColumnFacts, *, alone: bool) -> Any:
    if column.counts_up:
        return models.BigAutoField(primary_key=True, serialize=False)
    told: dict[str, Any] = {"null": True} if column.null else {}
    if column.primary and alone:
        told.update(primary_key=True, serialize=False)
    if column.length and column.kind == "bytes":
        told["max_length"] = column.length
    if column.kind in {"string", "varchar", "unicode"}:
        return models.CharField(max_length=column.length or 255, **told)
    return _FIELDS[column.kind](**told)


def _indexes(table: TableFacts, step: int) -> list[IndexFacts]:
    return [index for index in table.indexes if index.since == step]


def _index(index: IndexFacts) -> models.Index:
    return models.Index(fields=index.columns, name=index.name)


def _unique(index: IndexFacts) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=index.columns, name=index.name)
