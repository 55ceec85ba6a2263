"""What `manage.py migrate` makes is what the ledger makes, and Django knows all of it."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from django.apps import apps
from django.core.management import call_command
from django.db import connections

from effectonce.contrib.django import migrations
from effectonce.contrib.django.tables import LABEL, modelled
from effectonce.stores.sql.ddl import META, creating, described
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.tables import VERSION, tables
from tests.integration.django import project
from tests.services import Fleet

MIGRATIONS = Path(migrations.__file__).parent
FROZEN = Path(__file__).with_name("frozen")


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def both(request: pytest.FixtureRequest, fleet: Fleet, tmp_path: Any) -> Iterator[tuple[sa.Engine, sa.Engine]]:
    """A database that was migrated, and one in which the ledger made its tables."""
    server: Any = None if request.param == "sqlite" else getattr(fleet, request.param)()
    if request.param == "sqlite":
        project.give_sqlite(tmp_path)
        urls = [f"sqlite:///{tmp_path / name}.sqlite" for name in ("lite", "own")]
    else:
        urls = [server.fresh_url() for _ in range(2)]
        getattr(project, f"give_{request.param}")(urls[0])
    own = SqlLedger.open(urls[1], create_schema=True)
    own.ping()
    own.close()
    engines = sa.create_engine(urls[0], poolclass=sa.NullPool), sa.create_engine(urls[1], poolclass=sa.NullPool)
    yield engines
    connections.close_all()
    if request.param != "sqlite":
        for url in urls:
            server.put_back(url)


def test_migrated_tables_are_the_ledgers_own(both: tuple[sa.Engine, sa.Engine]) -> None:
    migrated, own = (_shape(engine) for engine in both)
    assert set(own) == {table.name for table in tables(None).metadata.sorted_tables}
    assert migrated == own
    assert _version(both[0]) == _version(both[1])


def test_a_database_that_was_migrated_before_gets_what_came_since(both: tuple[sa.Engine, sa.Engine]) -> None:
    """Also one in which an earlier release made the index with the tables."""
    alias = {"sqlite": "lite", "mariadb": "maria"}.get(both[0].dialect.name, "default")
    for _ in range(2):
        call_command("migrate", LABEL, "0002_history", database=alias, verbosity=0)
        assert "effectonce_waiting" not in str(_shape(both[0]))
        call_command("migrate", LABEL, database=alias, verbosity=0)
    call_command("migrate", LABEL, "0002_history", fake=True, database=alias, verbosity=0)
    call_command("migrate", LABEL, database=alias, verbosity=0)
    migrated, own = (_shape(engine) for engine in both)
    assert migrated == own


@pytest.mark.parametrize("name", sorted(path.stem for path in MIGRATIONS.glob("0*.py")))
def test_a_migration_that_databases_have_made_is_not_changed(name: str) -> None:
    """What a table or an index is changed by is the next migration; ``EFFECTONCE_GOLDEN=write`` writes a new one's."""
    migration = import_module(f"effectonce.contrib.django.migrations.{name}").Migration
    made = [each for operation in migration.operations for each in operation.database_operations]
    told = [
        f"-- {drivername}\n"
        + "".join(f"{statement};\n" for each in made for statement in each.making(drivername, each.names))
        for drivername in ("mariadb+pymysql", "postgresql+psycopg", "sqlite")
    ]
    frozen = FROZEN / f"{name}.sql"
    if os.environ.get("EFFECTONCE_GOLDEN") == "write":
        frozen.write_text("\n".join(told))
    assert "\n".join(told) == frozen.read_text()


def _shape(engine: sa.Engine) -> dict[str, Any]:
    inspector = sa.inspect(engine)
    return {
        name: {
            "columns": [
                (column["name"], str(column["type"]), column["nullable"], column["default"])
                for column in inspector.get_columns(name)
            ],
            "key": inspector.get_pk_constraint(name)["constrained_columns"],
            "unique": inspector.get_unique_constraints(name),
            "indexes": sorted(
                (
                    index["name"],
                    index["column_names"],
                    bool(index["unique"]),
                    str({k: str(v) for k, v in index.get("dialect_options", {}).items()}),
                )
                for index in inspector.get_indexes(name)
            ),
        }
        for name in inspector.get_table_names()
        if name.startswith("effectonce_")
    }


def _version(engine: sa.Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.execute(sa.text(f"select version from {META}")).scalars())


def test_there_is_nothing_to_migrate_and_the_migrations_can_be_undone(postgresql: str) -> None:
    call_command("makemigrations", LABEL, check=True, dry_run=True, verbosity=0)
    call_command("migrate", LABEL, "zero", database=postgresql, verbosity=0)
    left = [name for name in connections[postgresql].introspection.table_names() if name.startswith("effectonce_")]
    assert left == []
    call_command("migrate", LABEL, database=postgresql, verbosity=0)


def test_tables_that_the_ledger_made_are_taken_over(tmp_path: Any) -> None:
    """``once schema create`` came first."""
    connections["elsewhere"].close()
    connections.settings["elsewhere"].update(NAME=tmp_path / "first.sqlite")
    own = SqlLedger.open(f"sqlite:///{tmp_path / 'first.sqlite'}", create_schema=True)
    own.ping()
    own.close()
    call_command("migrate", LABEL, database="elsewhere", verbosity=0)
    assert _version(sa.create_engine(f"sqlite:///{tmp_path / 'first.sqlite'}", poolclass=sa.NullPool)) == [VERSION]
    connections["elsewhere"].close()


def test_every_table_but_the_version_has_a_model_with_its_columns() -> None:
    models = {model._meta.db_table: model for model in apps.get_app_config(LABEL).get_models()}
    assert set(models) == {table.name for table in described()} - {META}
    for table in modelled():
        columns = {field.column for field in models[table.name]._meta.concrete_fields}
        assert columns == {column.name for column in table.columns}


def test_every_table_and_every_later_index_comes_with_a_migration() -> None:
    """One that says ``since`` of a later step needs a migration that makes it."""
    from django.db.migrations.loader import MigrationLoader  # noqa: PLC0415 - of this test alone

    loader = MigrationLoader(None)
    made = [
        name
        for (label, _), migration in loader.disk_migrations.items()
        if label == LABEL
        for operation in migration.operations
        for each in getattr(operation, "database_operations", [])
        for name in each.names
    ]
    late = [each.name for table in described() for each in table.indexes if each.since != table.since]
    assert sorted(made) == sorted([*(table.name for table in described()), *late])


@pytest.mark.parametrize("drivername", ["postgresql+psycopg", "sqlite"])
def test_sql_can_be_printed_without_a_database(drivername: str) -> None:
    """What `sqlmigrate` shows."""
    words = " ".join(creating(drivername, ["effectonce_entries", META])).lower()
    assert "create table if not exists effectonce_entries" in words
    assert "where state = 1" in words
