"""Between versions of the schema: what takes tables from one release's to the next one's, with Alembic.

A release widens: its versions named *pre* are run before its code is deployed, and the code of the release before it
runs on what they make. A later release narrows: versions named *post* take away what no code uses any more, and are
run when all old code is gone. Each is one step of Alembic's, recorded in the table ``effectonce_alembic``.

Alembic is an extra (``effectonce[schema]``). Without it tables can be made (``once schema create``, ``once schema
sql``), and not changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Literal

from sqlalchemy import Connection, MetaData
from sqlalchemy.schema import CreateIndex, CreateTable

from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.schema import create_schema, is_for, one_at_a_time
from effectonce.stores.sql.tables import VERSION, Tables

BOOK: Final = "effectonce_alembic"
"""The table in which Alembic notes which steps were made."""

Phase = Literal["pre", "post"]

_PLACE: Final = "effectonce.stores.sql:migrations"
_OURS: Final = "effectonce_"


class SchemaToolMissing(ImportError):
    """Alembic is not installed."""

    def __init__(self) -> None:
        super().__init__("changing the schema needs Alembic: pip install 'effectonce[schema]'", name="alembic")


def upgrade(connection: Connection, tables: Tables, dialect: Dialect, *, phase: Phase) -> list[str]:
    """Make the steps that are missing, in order, and answer their names; *phase* ``"pre"`` makes no *post* steps.

    Each commits with its note where the database can do that; MariaDB commits definitions by themselves, so a step
    that died is made again, and leaves alone what is there. Two processes do it one after the other.
    """
    script = _script()
    made: list[str] = []
    with one_at_a_time(connection, dialect):
        if dialect.name != "sqlite":
            create_schema(connection, tables.metadata.schema)
        book = _book(connection, tables.metadata)
        for step in _missing(script, book, phase):
            with _operations(book, tables):
                step.module.upgrade()
            _note(book, step)
            made.append(step.revision)
        connection.execute(tables.meta.update().values(version=VERSION))
    return made


def missing(connection: Connection, tables: Tables, *, phase: Phase) -> list[str]:
    """The names of the steps that were not made yet, and that `upgrade` would make."""
    return [step.revision for step in _missing(_script(), _book(connection, tables.metadata), phase)]


def differences(connection: Connection, tables: Tables) -> list[str]:
    """How the tables differ from what this release expects, in words; empty when they do not."""
    autogenerate = _alembic("alembic.autogenerate")
    schema = tables.metadata.schema

    def is_ours(name: str | None, kind: str, _parents: Any) -> bool:
        if kind == "schema":
            return name == schema
        if kind == "table":
            return bool(name) and str(name).startswith(_OURS) and name != BOOK
        return True

    def is_meant(each: Any, _name: str | None, kind: str, is_found: bool, _other: Any) -> bool:  # noqa: FBT001 - Alembic's
        return kind != "index" or is_found or is_for(each, connection.dialect)

    options = {
        "include_name": is_ours,
        "include_object": is_meant,
        "include_schemas": schema is not None,
        "compare_type": False,
    }
    context = _alembic("alembic.runtime.migration").MigrationContext.configure(connection, opts=options)
    return [_in_words(each) for each in _flat(autogenerate.compare_metadata(context, tables.metadata))]


def sql(tables: Tables, dialect: Any) -> Iterator[str]:
    """The statements that make all tables, for whoever runs them by hand; *dialect* is SQLAlchemy's."""
    for table in tables.metadata.sorted_tables:
        yield str(CreateTable(table).compile(dialect=dialect)).strip()
        indexes = [index for index in table.indexes if is_for(index, dialect)]
        for index in sorted(indexes, key=lambda index: str(index.name)):
            yield str(CreateIndex(index).compile(dialect=dialect)).strip()
    insert = tables.meta.insert().values(version=VERSION)
    yield str(insert.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))


def _script() -> Any:
    config = _alembic("alembic.config").Config()
    config.set_main_option("script_location", _PLACE)
    return _alembic("alembic.script").ScriptDirectory.from_config(config)


def _book(connection: Connection, metadata: MetaData) -> Any:
    options = {"version_table": BOOK, "version_table_schema": metadata.schema}
    return _alembic("alembic.runtime.migration").MigrationContext.configure(connection, opts=options)


def _missing(script: Any, book: Any, phase: Phase) -> list[Any]:
    done = set(book.get_current_heads())
    passed = {step.revision for head in done for step in script.iterate_revisions(head, "base")}
    left = [step for step in reversed(list(script.walk_revisions())) if step.revision not in passed]
    return [step for step in left if phase == "post" or step.revision.startswith("pre")]


@contextmanager
def _operations(book: Any, tables: Tables) -> Iterator[None]:
    """Let a step use ``alembic.op``, and tell it which tables it is about."""
    book.opts["effectonce_tables"] = tables
    with _alembic("alembic.operations").Operations.context(book):
        yield


def _note(book: Any, step: Any) -> None:
    book.stamp(_script(), step.revision)


def _flat(found: list[Any]) -> Iterator[tuple[Any, ...]]:
    for each in found:
        if isinstance(each, list):
            yield from each
        else:
            yield each


def _in_words(difference: tuple[Any, ...]) -> str:
    """One difference: what is missing, or what is there that should not be."""
    kind, *what = difference
    verb, _, thing = kind.partition("_")
    named = [
        str(getattr(each, "name", None) or each) for each in what if each is not None and not isinstance(each, dict)
    ]
    return f"{_VERBS.get(verb, 'is different')}: {thing} {' '.join(named)}"


_VERBS: Final = {"add": "is missing", "remove": "is not expected"}


def _alembic(module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SchemaToolMissing from error
