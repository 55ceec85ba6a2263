"""Databases behind SQLAlchemy, found by the dialect of their engine.

SQLAlchemy and the drivers are the user's: they are loaded when a proof is asked for, and never for their own sake.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from effectonce.testing.databases import Database, Rows
from effectonce.testing.databases.reading import Reader
from effectonce.testing.databases.template import Template


def open_database(given: Any) -> Database:
    """The database of an engine, a URL, or a sessionmaker; raises TypeError for anything else."""
    engine = engine_of(given)
    if engine.dialect.name == "sqlite":
        return Pages(engine)
    if engine.dialect.name == "postgresql":
        return Template(engine, Reader(engine).rows)
    return SavedRows(engine)


def engine_of(given: Any) -> Any:
    """The engine that the tests mean."""
    sa = import_module("sqlalchemy")
    if isinstance(given, sa.Engine):
        return given
    if isinstance(given, (str, sa.URL)):
        return sa.create_engine(given)
    bind = getattr(given, "kw", {}).get("bind") or getattr(getattr(given, "session_factory", None), "kw", {}).get(
        "bind"
    )
    if isinstance(bind, sa.Engine):
        return bind
    message = (
        f"database= is an Engine, a URL, a sessionmaker with a bind, or a Django alias, not {type(given).__name__}"
    )
    raise TypeError(message)


class Pages:
    """SQLite: the whole database is small enough in a test to be copied as it is."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._reader = Reader(engine)
        driver = import_module("sqlite3")
        self._saved, self._dead = (driver.connect(":memory:", check_same_thread=False) for _ in range(2))
        self._died = False
        pools = import_module("sqlalchemy.pool")
        self.meets = not isinstance(engine.pool, (pools.StaticPool, pools.SingletonThreadPool))
        self.note = (
            None if self.meets else "two attempts at once were not tried: a database in memory has one connection"
        )

    def save(self) -> None:
        """See `Database.save`."""
        self._with_driver(lambda driver: driver.backup(self._saved))

    def at_death(self) -> None:
        """SQLAlchemy gives a connection up in which somebody died, and a database in memory goes with it: keep that."""
        if not self.meets:
            self._with_driver(self._keep)

    def _keep(self, driver: Any) -> None:
        driver.rollback()
        driver.backup(self._dead)
        self._died = True

    def revive(self) -> None:
        """See `Database.revive`."""
        if self._died:
            self._died = False
            self._with_driver(self._dead.backup)

    def put_back(self) -> None:
        """See `Database.put_back`."""
        self._with_driver(self._saved.backup)

    def rows(self) -> Rows:
        """See `Database.rows`."""
        return self._reader.rows()

    def close(self) -> None:
        """See `Database.close`."""
        self.put_back()
        self._saved.close()
        self._dead.close()

    def _with_driver(self, step: Callable[[Any], None]) -> None:
        raw = self._engine.raw_connection()
        try:
            step(raw.driver_connection)
        finally:
            raw.close()


class SavedRows:
    """Any other database: its rows are deleted and inserted again."""

    note: str | None = None
    meets = True

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._reader = Reader(engine)
        self._tables: list[Any] = []
        self._saved: dict[str, list[dict[str, Any]]] = {}

    def save(self) -> None:
        """See `Database.save`."""
        sa = import_module("sqlalchemy")
        metadata = sa.MetaData()
        metadata.reflect(self._engine)
        self._tables = list(metadata.sorted_tables)
        with self._engine.connect() as connection:
            for table in self._tables:
                self._saved[table.name] = [dict(row) for row in connection.execute(sa.select(table)).mappings()]

    def put_back(self) -> None:
        """See `Database.put_back`."""
        with self._engine.begin() as connection:
            for table in reversed(self._tables):
                connection.execute(table.delete())
            for table in self._tables:
                if self._saved[table.name]:
                    connection.execute(table.insert(), self._saved[table.name])

    def at_death(self) -> None:
        """See `Database.at_death`: the server forgets what was not committed."""

    def revive(self) -> None:
        """See `Database.revive`."""

    def rows(self) -> Rows:
        """See `Database.rows`."""
        return self._reader.rows()

    def close(self) -> None:
        """See `Database.close`."""
        self.put_back()
