"""The face of the plugin: what a test calls."""

from collections.abc import Mapping, Sequence
from typing import Any

from effectonce.testing.databases import database_of
from effectonce.testing.delivery import Call
from effectonce.testing.sweep import Sweep
from effectonce.testing.verdict import Proof


class Effects:
    """Proves tasks; a test gets one as the fixture ``effects``.

    *database* and *ignore* are what its tests mean by default.
    """

    def __init__(self, database: Any = None, ignore: Sequence[str] = ()) -> None:
        self._database = database
        self._ignore = tuple(ignore)

    def prove_once(
        self,
        task: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        database: Any = None,
        ignore: Sequence[str] = (),
    ) -> Proof:
        """Prove that ``task(*args, **kwargs)`` takes effect once, whatever is delivered twice or killed where.

        *task*: a Celery task, with or without a policy, or a plain function. *database*: an Engine, a URL, a
        sessionmaker or a Django alias, whose tables are compared; it is left as it was. *ignore*: columns (``column``
        or ``table.column``) that need not be the same; those in which two clean runs differ are found by themselves.

        Answers what was tried. Raises `NotOnce`, an AssertionError, with each fault and what it changed; and what
        the task itself raises when nothing is done to it.
        """
        given = database if database is not None else self._database
        found = database_of(given) if given is not None else None
        return Sweep(Call(task, args, kwargs or {}), found, (*self._ignore, *ignore)).prove()
