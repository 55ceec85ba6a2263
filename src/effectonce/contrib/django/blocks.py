"""One ``atomic`` block of this thread's connection, and how a body may not leave it.

Django says nothing at all when a connection is closed inside ``atomic``: the work is gone and the block ends without
an error. So while a body runs, the connection's own ``close``, ``commit``, ``rollback`` and ``set_autocommit`` refuse,
and every statement is looked at by an execute wrapper: SQL that ends the transaction, and writes through other aliases,
which would stay when the body is rolled back.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

from django.db import DatabaseError, OperationalError, connections, transaction

from effectonce.stores.sql.escapes import is_celerys_own
from effectonce.stores.sql.work import FAILED

logger = logging.getLogger("effectonce")

OPEN: Final = "it left an atomic block of its own open"
MARKED: Final = f"it marked its transaction for rollback, or {FAILED}"

_FORBIDDEN: Final = {
    "close": "it closed the connection",
    "commit": "it committed the connection",
    "rollback": "it rolled back the connection",
    "set_autocommit": "it changed the autocommit of the connection",
}
_SKIPPED: Final = r"[\s;(]*(?:/\*.*?\*/[\s;(]*|--[^\n]*\n[\s;(]*)*"
_WRITES: Final = re.compile(
    _SKIPPED + r"(?:(?:insert|update|delete|merge|replace|truncate|create|alter|drop|copy|call|do|grant|revoke)\b"
    r"|with\b.*?\b(?:insert\s+into|delete\s+from|update\s+\S+\s+set|merge\s+into)\b)",
    re.IGNORECASE | re.DOTALL,
)


class _Undone(Exception):
    """Tells ``atomic`` to roll back."""


class AtomicBlock:
    """One transaction on this thread's connection to *alias*, or a savepoint of the one that is open there."""

    is_nested = False

    def __init__(self, alias: str) -> None:
        self._alias = alias
        self._connection: Any = connections[alias]
        self._atomic: Any = None
        self._driver: Any = None

    def begin(self) -> Any:
        """Begin; once more on a new connection when the one that had idled turns out to be broken."""
        connection = self._connection
        self.is_nested = connection.in_atomic_block
        was_open = connection.connection is not None
        try:
            self._enter()
        except DatabaseError:
            if self.is_nested or not was_open:
                raise
            connection.close()
            self._enter()
        self._driver = connection.connection
        return self._driver

    def _enter(self) -> None:
        atomic = transaction.atomic(using=self._alias)
        atomic.__enter__()
        self._atomic = atomic

    @contextmanager
    def watching(self, *, veto: Callable[[str], None] | None, notice: Callable[[str], None]) -> Iterator[None]:
        """See `stores.sql.hosted.Block.watching`."""
        mine = self._connection
        if veto is None:
            with mine.execute_wrapper(_on_mine(notice)):
                yield
            return
        with ExitStack() as stack:
            for name, how in _FORBIDDEN.items():
                stack.enter_context(_forbidden(mine, name, how, veto))
            stack.enter_context(mine.execute_wrapper(_on_mine(notice)))
            for other in connections.all():
                if other is not mine:
                    stack.enter_context(other.execute_wrapper(_on_other(other.alias, veto)))
            yield

    def on_commit(self, call: Callable[[], None]) -> None:
        """See `stores.sql.hosted.Block.on_commit`."""
        transaction.on_commit(call, using=self._alias, robust=True)

    def is_closed(self) -> bool:
        """Whether the connection was closed under the block."""
        connection = self._connection
        return connection.connection is not self._driver or bool(connection.closed_in_transaction)

    def fault(self) -> str | None:
        """See `stores.sql.hosted.Block.fault`."""
        connection = self._connection
        if connection.needs_rollback:
            return MARKED
        return None if connection.atomic_blocks[-1:] == [self._atomic] else OPEN

    def commit(self) -> None:
        """Commit; an error of the commit itself is raised, whatever befalls the connection after it.

        Hooks of ``on_commit`` run then. One that fails is logged and holds up neither the others nor the task: its
        work is committed.
        """
        atomic, self._atomic = self._atomic, None
        if self.is_nested:
            atomic.__exit__(None, None, None)
            return
        connection = self._connection
        connection.run_on_commit = [(sids, hook, True) for sids, hook, _ in connection.run_on_commit]
        ended: list[Exception | None] = []
        try:
            with _noting(connection, ended):
                atomic.__exit__(None, None, None)
        except Exception:
            if ended == [None]:
                logger.exception("the work is committed; its connection to %r failed after that", self._alias)
                self._drop()
                return
            if ended and ended[0] is not None:
                raise ended[0] from ended[0].__cause__  # whatever the broken connection said after it
            raise
        if ended != [None]:
            message = "the connection was closed before the commit"
            raise OperationalError(message)

    def rollback(self) -> None:
        """Undo the block, if it has not ended; raises nothing."""
        atomic, self._atomic = self._atomic, None
        if atomic is None:
            return
        undone = _Undone()
        blocks = self._connection.atomic_blocks
        try:
            while atomic in blocks[:-1]:  # the body left blocks of its own open
                blocks[-1].__exit__(type(undone), undone, None)
            atomic.__exit__(type(undone), undone, None)
        except Exception:  # noqa: BLE001 - whatever a broken connection says, what was not committed is gone
            if not self.is_nested:
                self._drop()

    def _drop(self) -> None:
        with suppress(Exception):
            self._connection.close()


@contextmanager
def _forbidden(connection: Any, name: str, how: str, veto: Callable[[str], None]) -> Iterator[None]:
    """While it lasts, a method of *connection* refuses."""
    plain = getattr(connection, name)

    def forbidden(*args: Any, **kwargs: Any) -> Any:
        veto(how)
        return plain(*args, **kwargs)

    with _instead(connection, name, forbidden):
        yield


@contextmanager
def _noting(connection: Any, ended: list[Exception | None]) -> Iterator[None]:
    """Note how the commit ended: None, or its error."""
    plain = connection.commit

    def commit() -> None:
        try:
            plain()
        except Exception as error:
            ended.append(error)
            raise
        ended.append(None)

    with _instead(connection, "commit", commit):
        yield


@contextmanager
def _instead(connection: Any, name: str, method: Callable[..., Any]) -> Iterator[None]:
    """Put a method over the connection's own, as Django's test cases do."""
    own = vars(connection)
    earlier = own.get(name)
    own[name] = method
    try:
        yield
    finally:
        if earlier is None:
            own.pop(name, None)
        else:
            own[name] = earlier


Execute = Callable[[Any, Any, bool, dict[str, Any]], Any]


def _on_mine(notice: Callable[[str], None]) -> Callable[..., Any]:
    def watch(execute: Execute, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:  # noqa: FBT001 - Django's own form
        notice(_text(sql))
        return execute(sql, params, many, context)

    return watch


def _on_other(alias: str, veto: Callable[[str], None]) -> Callable[..., Any]:
    def watch(execute: Execute, sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:  # noqa: FBT001 - Django's own form
        if _WRITES.match(_text(sql)) and not is_celerys_own(sys._getframe()):  # noqa: SLF001 - documented
            veto(f"it wrote through the alias {alias!r}, which is not part of its transaction")
        return execute(sql, params, many, context)

    return watch


def _text(sql: Any) -> str:
    """A statement as text; psycopg's composed ones tell it themselves."""
    return sql if isinstance(sql, str) else str(sql.as_string(None) if hasattr(sql, "as_string") else sql)
