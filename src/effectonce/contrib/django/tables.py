"""Models and migration operations, made from the description of the ledger's tables.

The tables are created by the ledger's own SQL; the models are there so that Django knows them: ``flush`` and test cases
empty them, ``makemigrations`` finds nothing to do, and a test run without migrations creates them.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import migrations, models, router
from django.db.migrations.operations.base import Operation

from effectonce.contrib.django.host import DjangoHost
from effectonce.stores.sql.ddl import META, ColumnFacts, IndexFacts, TableFacts, creating, described, dropping

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


def options(table: TableFacts) -> dict[str, Any]:
    """The ``Meta`` of a table's model."""
    words = table.name.replace("_", " ")
    return {
        "db_table": table.name,
        "verbose_name": words,
        "verbose_name_plural": words,
        "default_permissions": (),
        "indexes": [models.Index(fields=each.columns, name=each.name) for each in table.indexes if not each.unique],
        "constraints": [_unique(each) for each in table.indexes if each.unique],
    }


def operations(version: int) -> list[Operation]:
    """What the migration to *version* does: create the tables that came with it, if they are not there yet."""
    new = [table for table in described() if table.since == version]
    states = [
        migrations.CreateModel(class_name(table), fields(table), options(table))
        for table in modelled()
        if table.since == version
    ]
    names = [table.name for table in new]
    return [migrations.SeparateDatabaseAndState(database_operations=[CreateTables(names)], state_operations=states)]


class CreateTables(Operation):
    """Creates tables of the ledger by the ledger's own SQL, in the databases that a router allows."""

    reversible = True
    reduces_to_sql = True

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Nothing: the models stand beside this operation."""

    def database_forwards(self, app_label: str, schema_editor: Any, _from_state: Any, _to_state: Any) -> None:
        """Create them."""
        self._execute(app_label, schema_editor, creating(drivername(schema_editor), self.names))

    def database_backwards(self, app_label: str, schema_editor: Any, _from_state: Any, _to_state: Any) -> None:
        """Drop them."""
        self._execute(app_label, schema_editor, dropping(drivername(schema_editor), self.names))

    def describe(self) -> str:
        """Say what is created."""
        return f"Create the ledger's tables {', '.join(self.names)}"

    def _execute(self, app_label: str, schema_editor: Any, statements: Sequence[str]) -> None:
        if router.allow_migrate(schema_editor.connection.alias, app_label):
            for statement in statements:
                schema_editor.execute(statement, params=None)


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


def _unique(index: IndexFacts) -> models.UniqueConstraint:
    return models.UniqueConstraint(fields=index.columns, name=index.name)
