"""Which engines can hold a ledger, and how one is made of a URL."""

from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError

from effectonce.stores.sql.dialects import dialect_of

_CONNECT: Final = {
    "prepare_threshold": None,  # a pooler would mix prepared statements up
    "application_name": "effectonce",
    "connect_timeout": 5,
    "keepalives": 1,  # so that a worker notices that the server's machine is gone
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


def own_engine(given: str | URL) -> Engine:
    """Make an engine of a URL, whose own options go first; raises ValueError, without the URL's password.

    Its pool has no upper end: a worker has as many connections as it has bodies, and renewals never wait for one.
    """
    url = _read(given)
    dialect_of(url.get_backend_name())
    options: dict[str, Any] = {"max_overflow": -1, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        options["connect_args"] = {name: value for name, value in _CONNECT.items() if name not in url.query}
    elif _is_in_memory(url):
        raise ValueError(_IN_MEMORY)
    try:
        engine = create_engine(url, **options)
    except (ArgumentError, TypeError, ValueError):
        message = f"its URL has parts that {url.drivername} does not know"
        raise ValueError(message) from None
    check_engine(engine)
    return engine


def check_engine(engine: Engine) -> None:
    """Raise ValueError for an engine that cannot hold a ledger."""
    dialect = engine.dialect
    if dialect.is_async:
        message = "workers are synchronous: give an engine of create_engine, not of create_async_engine"
        raise ValueError(message)
    dialect_of(dialect.name)
    if dialect.name == "postgresql" and dialect.driver != "psycopg":
        message = f"a ledger on PostgreSQL needs postgresql+psycopg://, not postgresql+{dialect.driver}://"
        raise ValueError(message)
    if dialect.name == "sqlite" and _is_in_memory(engine.url):
        raise ValueError(_IN_MEMORY)


def shown(url: URL) -> str:
    """A URL without what may be secret: its password, and its options, which may hold another one."""
    return url.set(query={}).render_as_string(hide_password=True)


_IN_MEMORY: Final = (
    "a database in memory belongs to one connection, so it can hold no ledger; name a file, or use memory:// for tests"
)


def _read(given: str | URL) -> URL:
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        message = "it is no database URL; write postgresql+psycopg://user@host/database or sqlite:///file"
        raise ValueError(message) from None
    if url.drivername in {"postgres", "postgresql"}:
        return url.set(drivername="postgresql+psycopg")
    return url


def _is_in_memory(url: URL) -> bool:
    name = url.database or ""
    return name in {"", ":memory:", "file::memory:"} or url.query.get("mode") == "memory" or "mode=memory" in name
