"""The database of a proof: saved before the first run, put back before each one, read after it.

======================  ======================================================================================
database                how each run gets the same beginning
======================  ======================================================================================
SQLite                  its pages are saved in memory and written back (a file, or one in memory)
PostgreSQL              the runs use a copy, made anew from the database as a template; the original stays as it is
another, and Django     rows are saved, and put back; sequences go on
======================  ======================================================================================
"""

from typing import Any, Protocol

Rows = dict[str, list[dict[str, Any]]]
"""The rows of each table; tables of our own ledger are left out."""

OURS = "effectonce_"


class Database(Protocol):
    """A database that can be put back."""

    note: str | None
    """What cannot be tried on it, in a line."""

    meets: bool
    """Whether two attempts can be under way at once."""

    def save(self) -> None:
        """Remember how it is now."""
        ...

    def put_back(self) -> None:
        """Make it again as it was; what an attempt has left open is ended."""
        ...

    def at_death(self) -> None:
        """An attempt dies now, in this thread."""
        ...

    def revive(self) -> None:
        """The dead attempt's connections are ended; the next delivery comes."""
        ...

    def rows(self) -> Rows:
        """What is in it now."""
        ...

    def close(self) -> None:
        """Leave it as it was before the proof."""
        ...


def database_of(given: Any) -> Database:
    """What the tests gave as their database: an engine, a URL, a sessionmaker, or the alias of a Django database."""
    from importlib import import_module  # noqa: PLC0415 - nothing is loaded before somebody asks for a proof

    if isinstance(given, str) and "://" not in given:
        kind = import_module("effectonce.testing.databases.django")
    else:
        kind = import_module("effectonce.testing.databases.sqlalchemy")
    found: Database = kind.open_database(given)
    return found
