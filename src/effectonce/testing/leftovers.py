"""What an attempt leaves open: a killed process would have closed it.

Sessions and connections of SQLAlchemy that an attempt began and did not end are ended after it, so that the server (or
the file) forgets their transactions. Sessions that the test itself uses are left alone.
"""

from collections.abc import Callable
from importlib import import_module
from types import TracebackType
from typing import Any, Self

from effectonce.testing.attempts import current_attempt
from effectonce.testing.libraries import loaded


class Leftovers:
    """Listens while it is entered; `end` ends what is open."""

    def __init__(self) -> None:
        self._sessions: set[Any] = set()
        self._connections: list[Any] = []
        self._listening: list[tuple[Any, str, Callable[..., None]]] = []

    def __enter__(self) -> Self:
        orm, pool = loaded("sqlalchemy.orm"), loaded("sqlalchemy.pool")
        if orm is not None:
            self._listen(orm.Session, "after_begin", self._began)
        if pool is not None:
            self._listen(pool.Pool, "checkout", self._taken)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        for target, name, listener in self._listening:
            import_module("sqlalchemy").event.remove(target, name, listener)

    def end(self) -> None:
        """End what the attempts so far have left open."""
        sessions, self._sessions = self._sessions, set()
        connections, self._connections = self._connections, []
        for session in sessions:
            session.close()
        for connection in connections:
            if connection.is_valid:
                _end(connection)

    def _listen(self, target: Any, name: str, listener: Callable[..., None]) -> None:
        import_module("sqlalchemy").event.listen(target, name, listener)
        self._listening.append((target, name, listener))

    def _began(self, session: Any, _transaction: Any, _connection: Any) -> None:
        if current_attempt() is not None:
            self._sessions.add(session)

    def _taken(self, _driver: Any, _record: Any, connection: Any) -> None:
        if current_attempt() is not None:
            self._connections.append(connection)


def _end(connection: Any) -> None:
    """Roll back and give back; one that cannot be is given up. A database in memory lives as long as its connection."""
    try:
        connection.driver_connection.rollback()
        connection.close()
    except Exception:  # noqa: BLE001 - each driver has its own
        connection.invalidate()
