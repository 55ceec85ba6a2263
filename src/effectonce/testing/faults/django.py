"""Django's database connections: statements and commits."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from effectonce.testing.attempts import Attempt, Touch
from effectonce.testing.faults.patching import patched
from effectonce.testing.faults.sql import described
from effectonce.testing.libraries import loaded


@contextmanager
def watched() -> Iterator[None]:
    """Watch all connections."""
    cursors, connections = loaded("django.db.backends.utils"), loaded("django.db.backends.base.base")
    with ExitStack() as stack:
        if cursors is not None and connections is not None:
            for name in ("execute", "executemany"):
                stack.enter_context(patched(cursors.CursorWrapper, name, _statement))
            stack.enter_context(patched(connections.BaseDatabaseWrapper, "_commit", _commit))
        yield


def _statement(_attempt: Attempt, _cursor: Any, sql: Any, *_: Any, **__: Any) -> Touch:
    return described(str(sql))


def _commit(*_: Any, **__: Any) -> Touch:
    return Touch("COMMIT")
