"""A database behind Django, by its alias."""

from importlib import import_module
from typing import Any

from effectonce.testing.databases import OURS, Database, Rows


def open_database(alias: str) -> Database:
    """The database of this alias; raises what Django raises when there is none."""
    return DjangoRows(import_module("django.db").connections[alias])


class DjangoRows:
    """Rows are saved and put back. A test inside a transaction of its own (``TestCase``) cannot prove anything."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._saved: dict[str, tuple[list[str], list[tuple[Any, ...]]]] = {}
        in_memory = connection.vendor == "sqlite"
        self.meets = not in_memory
        self.note = "two attempts at once were not tried: SQLite under Django has one connection" if in_memory else None

    def save(self) -> None:
        """See `Database.save`; raises RuntimeError inside a test's own transaction."""
        if self._connection.in_atomic_block:
            message = "a proof needs commits: use a TransactionTestCase, or pytest.mark.django_db(transaction=True)"
            raise RuntimeError(message)
        for table in self._connection.introspection.table_names():
            self._saved[table] = self._read(table)

    def put_back(self) -> None:
        """See `Database.put_back`."""
        connection = self._connection
        quote = connection.ops.quote_name
        transaction = import_module("django.db.transaction")
        with connection.constraint_checks_disabled(), transaction.atomic(using=connection.alias):
            cursor = connection.cursor()
            for table in self._saved:
                cursor.execute(f"delete from {quote(table)}")  # noqa: S608 - the name is Django's own
            for table, (columns, rows) in self._saved.items():
                marks, names = ", ".join(["%s"] * len(columns)), ", ".join(map(quote, columns))
                for row in rows:
                    cursor.execute(f"insert into {quote(table)} ({names}) values ({marks})", row)  # noqa: S608

    def at_death(self) -> None:
        """See `Database.at_death`: the server forgets what was not committed."""

    def revive(self) -> None:
        """See `Database.revive`."""

    def rows(self) -> Rows:
        """See `Database.rows`."""
        found: Rows = {}
        for table in self._saved:
            columns, rows = self._read(table)
            key = self._number(table)
            if not table.startswith(OURS):
                found[table] = [
                    {name: value for name, value in zip(columns, row, strict=True) if name != key} for row in rows
                ]
        return found

    def close(self) -> None:
        """See `Database.close`."""
        self.put_back()

    def _read(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        with self._connection.cursor() as cursor:
            cursor.execute(f"select * from {self._connection.ops.quote_name(table)}")  # noqa: S608 - Django's own name
            return [column[0] for column in cursor.description], list(cursor.fetchall())

    def _number(self, table: str) -> str | None:
        with self._connection.cursor() as cursor:
            sequences = self._connection.introspection.get_sequences(cursor, table)
        return sequences[0]["column"] if sequences else None
