"""The work of the demo, and its judge: one row a charge, appended, without any unique constraint.

Nothing here stops a second row. Whoever charges an order twice is found out by counting.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateSchema, DropSchema

NAME = "effectonce_demo_charges"


class Charges:
    """The charges made by one task, in the database at *url*, in *schema* if given.

    Connections are not pooled, so that forked processes share none. SQLAlchemyError when the database does not answer.
    """

    def __init__(self, url: str, *, task: str, schema: str | None) -> None:
        self._schema = schema
        self.table = sa.Table(
            f"{NAME}_{task}",
            sa.MetaData(schema=schema),
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("order_id", sa.Integer, nullable=False),
            sa.Column("amount", sa.Integer, nullable=False),
        )
        patience = {"timeout": 30} if sa.make_url(url).get_backend_name() == "sqlite" else {}
        self._engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=patience)

    def create(self) -> None:
        """Create the table, and the schema before it."""
        with self._engine.begin() as connection:
            if self._schema:
                connection.execute(CreateSchema(self._schema, if_not_exists=True))
            self.table.create(connection)

    def row(self, order: int, amount: int) -> Any:
        """Return the statement that charges an order."""
        return self.table.insert().values(order_id=order, amount=amount)

    def charge(self, order: int, amount: int) -> None:
        """Charge an order, committed."""
        with self._engine.begin() as connection:
            connection.execute(self.row(order, amount))

    def count(self) -> Counter[int]:
        """Tell how often each order was charged."""
        with self._engine.connect() as connection:
            return Counter(connection.execute(sa.select(self.table.c.order_id)).scalars())

    def lock_file(self) -> Callable[[], None]:
        """Take the write lock of a SQLite file, and return what gives it back; DatabaseError when it cannot be had."""
        connection = self._engine.connect()
        try:
            connection.exec_driver_sql("begin immediate")
        except BaseException:
            connection.close()
            raise
        return connection.close

    def drop(self) -> None:
        """Drop the schema of the run with all that is in it."""
        with self._engine.begin() as connection:
            connection.execute(DropSchema(self._schema or "", cascade=True, if_exists=True))


def backend(url: str) -> str:
    """Return which database *url* names; raises ValueError, with what to do, when it cannot be opened from here."""
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        message = "it is not the URL of a database"
        raise ValueError(message) from error
    if parsed.get_backend_name() == "postgresql" and parsed.drivername != "postgresql+psycopg":
        message = f"write postgresql+psycopg://, not {parsed.drivername}://"
        raise ValueError(message)
    try:
        parsed.get_dialect().import_dbapi()
    except sa.exc.NoSuchModuleError as error:
        message = f"there is no database {parsed.drivername}://"
        raise ValueError(message) from error
    except ImportError as error:
        message = f"its driver is missing ({error.name}); pip install 'effectonce[postgresql]' brings PostgreSQL's"
        raise ValueError(message) from error
    return parsed.get_backend_name()


def without_password(url: str) -> str:
    """Return *url* as it may be shown."""
    return sa.make_url(url).render_as_string(hide_password=True)


def file_of(url: str) -> str | None:
    """Return the file of a SQLite URL."""
    return sa.make_url(url).database


def reason_of(error: Exception) -> str:
    """Return the first line of what a database said."""
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]


DatabaseError = sa.exc.SQLAlchemyError
"""What a database answers when it cannot do what it was asked."""
