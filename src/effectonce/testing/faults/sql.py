"""SQLAlchemy: statements and commits, of every engine.

Dialects are watched, not connections: what a dialect is asked to execute is what goes to the driver.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from effectonce.testing.attempts import Attempt, Touch
from effectonce.testing.faults.patching import patched, shortened
from effectonce.testing.libraries import loaded

_READING = ("select", "pragma", "show", "explain", "savepoint", "release", "begin", "rollback", "set")


@contextmanager
def watched() -> Iterator[None]:
    """Watch all dialects that are loaded."""
    default = loaded("sqlalchemy.engine.default")
    with ExitStack() as stack:
        if default is not None:
            for dialect in _with_subclasses(default.DefaultDialect):
                for name in ("do_execute", "do_executemany", "do_execute_no_params"):
                    stack.enter_context(patched(dialect, name, _statement))
                stack.enter_context(patched(dialect, "do_commit", _commit))
        yield


def _with_subclasses(kind: Any) -> list[Any]:
    found = [kind]
    for child in kind.__subclasses__():
        found += _with_subclasses(child)
    return found


def _statement(_attempt: Attempt, _dialect: Any, cursor: Any, statement: Any, *_: Any, **__: Any) -> Touch:
    return replace(described(str(statement)), end=cursor.close)


def described(statement: str) -> Touch:
    """A statement as a touch."""
    words = statement.split(maxsplit=1)
    verb = words[0].lower() if words else ""
    return Touch(shortened(statement), changes=not verb.startswith(_READING))


def _commit(*_: Any, **__: Any) -> Touch:
    return Touch("COMMIT")
