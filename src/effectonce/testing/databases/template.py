"""PostgreSQL: each run gets a copy of the database, made from it as a template.

Every engine of this process that connects to the database gets to the copy instead, while the proof lasts; connections
that were made for an earlier copy, or for the original, are given up when they are next taken out of their pool.
"""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from effectonce.testing.databases import Rows


class Template:
    """A database on PostgreSQL 13 or newer, whose user may create databases."""

    note: str | None = None
    meets = True

    def __init__(self, engine: Any, read: Callable[[], Rows]) -> None:
        self._engine = engine
        self._read = read
        self._original = engine.url.database
        self._copy = f"{self._original}_once_{os.getpid()}"
        self._run = 0
        self._listening: list[tuple[Any, str, Callable[..., None]]] = []

    def save(self) -> None:
        """Let nobody connect to the original any more; it stays as it is."""
        sa, pools = import_module("sqlalchemy"), import_module("sqlalchemy.pool")
        self._listen(sa.Engine, "do_connect", self._connecting)
        self._listen(pools.Pool, "connect", self._connected)
        self._listen(pools.Pool, "checkout", self._taken)
        self._engine.dispose()

    def put_back(self) -> None:
        """See `Database.put_back`."""
        self._run += 1
        self._engine.dispose()
        self._ask(f'drop database if exists "{self._copy}" with (force)')
        self._ask(self._ending_strangers)
        self._ask(f'create database "{self._copy}" template "{self._original}"')

    @property
    def _ending_strangers(self) -> str:
        """End what our own ledgers had open before the proof: beside it the original cannot be a template."""
        ours = f"datname = '{self._original}' and application_name = 'effectonce' and pid <> pg_backend_pid()"
        return f"select pg_terminate_backend(pid) from pg_stat_activity where {ours}"  # noqa: S608 - the engine's own

    def at_death(self) -> None:
        """See `Database.at_death`: the server forgets what was not committed."""

    def revive(self) -> None:
        """See `Database.revive`."""

    def rows(self) -> Rows:
        """See `Database.rows`."""
        return self._read()

    def close(self) -> None:
        """Drop the copy, and let everybody connect to the original again."""
        self._run += 1
        sa = import_module("sqlalchemy")
        self._engine.dispose()
        self._ask(f'drop database if exists "{self._copy}" with (force)')
        for target, name, listener in self._listening[:2]:
            sa.event.remove(target, name, listener)
        self._original = self._copy = ""

    def _listen(self, target: Any, name: str, listener: Callable[..., None]) -> None:
        import_module("sqlalchemy").event.listen(target, name, listener)
        self._listening.append((target, name, listener))

    def _ask(self, statement: str) -> None:
        sa = import_module("sqlalchemy")
        engine = sa.create_engine(
            self._engine.url.set(database="postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    def _connecting(self, _dialect: Any, _record: Any, _cargs: Any, cparams: dict[str, Any]) -> None:
        for name in ("dbname", "database"):
            if cparams.get(name) == self._original:
                cparams[name] = self._copy

    def _connected(self, driver: Any, record: Any) -> None:
        if self._is_ours(driver):
            record.info["effectonce_run"] = self._run

    def _taken(self, driver: Any, record: Any, _proxy: Any) -> None:
        if self._is_ours(driver) and record.info.get("effectonce_run") != self._run:
            raise import_module("sqlalchemy").exc.DisconnectionError

    def _is_ours(self, driver: Any) -> bool:
        info = getattr(driver, "info", None)
        return info is not None and info.dbname in {self._original, self._copy}
