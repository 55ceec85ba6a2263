"""SQLAlchemy on driver connections that belong to a framework, such as Django's.

What is lent is used and given back as it is: SQLAlchemy neither begins, commits nor rolls back on it, never resets
it, and never closes it. All of that is its owner's.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import URL, Engine, Pool, create_engine


class _Lent(Pool):
    """Gives out what its thread was lent at this moment, and keeps nothing."""

    def __init__(self, lend: Callable[[], Any]) -> None:
        super().__init__(lend, reset_on_return=None)

    def status(self) -> str:
        """Say what it is."""
        return "lent"

    def recreate(self) -> "_Lent":
        """Itself: there is nothing in it."""
        return self

    def dispose(self) -> None:
        """Nothing."""

    def _do_get(self) -> Any:
        return self._create_connection()

    def _do_return_conn(self, record: Any) -> None:
        """Nothing: its owner has it."""

    def _close_connection(self, connection: Any, *, terminate: bool = False) -> None:
        """Nothing: its owner closes it."""


def lent_engine(drivername: str, lend: Callable[[], Any]) -> Engine:
    """Make an engine whose connections are those that *lend* gives to the thread that asks.

    It is not set up by looking at a first connection (SQLAlchemy would roll back on it), so it knows no more of the
    database than its dialect does.
    """
    engine = create_engine(URL.create(drivername), pool=_Lent(lend), hide_parameters=True, _initialize=False)
    vars(engine.dialect).update(do_begin=_nothing, do_commit=_nothing, do_rollback=_nothing)
    return engine


def _nothing(_driver: Any) -> None:
    """The transaction is its owner's."""
