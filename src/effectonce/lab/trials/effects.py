"""The effects of a trial, and their judge: one row an effect, appended, without any unique constraint.

Nothing here stops a second row. Whoever acts twice is found out by counting.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateSchema, DropSchema

NAME = "lab_effects"
DatabaseError = sa.exc.SQLAlchemyError


class Effects:
    """The table in the database at *url*; connections are not pooled, so that forked processes share none."""

    def __init__(self, url: str, *, schema: str | None) -> None:
        self._schema = schema
        self.table = sa.Table(
            NAME,
            sa.MetaData(schema=schema),
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("intent", sa.String(200), nullable=False),
            sa.Column("at", sa.Float, nullable=False),
        )
        patience = {"timeout": 30} if sa.make_url(url).get_backend_name() == "sqlite" else {}
        self._engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=patience)

    def create(self) -> None:
        """Create the table, and the schema before it."""
        with self._engine.begin() as connection:
            if self._schema:
                connection.execute(CreateSchema(self._schema, if_not_exists=True))
            self.table.create(connection)

    def drop(self) -> None:
        """Drop the schema with all that is in it."""
        if self._schema:
            with self._engine.begin() as connection:
                connection.execute(DropSchema(self._schema, cascade=True, if_exists=True))

    def row(self, intent: str, at: float) -> Any:
        """Return the statement of one effect."""
        return self.table.insert().values(intent=intent, at=at)

    def add(self, intent: str, at: float) -> None:
        """Take effect, committed."""
        with self._engine.begin() as connection:
            connection.execute(self.row(intent, at))

    def count(self) -> Counter[str]:
        """Tell how often each intent took effect."""
        return Counter(intent for intent, _ in self.all())

    def all(self) -> list[tuple[str, float]]:
        """Return every effect in its order, with its time."""
        with self._engine.connect() as connection:
            query = sa.select(self.table.c.intent, self.table.c.at).order_by(self.table.c.at)
            return [(row.intent, row.at) for row in connection.execute(query)]

    @contextmanager
    def session(self) -> Iterator[Session]:
        """A session of a caller that has a transaction of its own."""
        with Session(self._engine) as session:
            yield session
