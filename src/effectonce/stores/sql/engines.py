"""Which engines can hold a ledger, and how one is made of a URL."""

import socket
from typing import Any, Final

from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError

from effectonce.stores.sql.dialects import dialect_of
from effectonce.stores.sql.green import let_others_run
from effectonce.stores.sql.mariadb import OURS

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


_MARIADB: Final = frozenset({"mariadb", "mysql"})
_CONNECT_MARIADB: Final = {"connect_timeout": 5, "program_name": "effectonce", "charset": "utf8mb4"}
_KEEPALIVE: Final = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
_EXTRAS: Final = {
    "psycopg": "pip install 'effectonce[postgresql]' brings it",
    "pymysql": "pip install 'effectonce[mysql]' brings it",
}


def own_engine(given: str | URL) -> Engine:
    """Make an engine of a URL, whose own options go first; raises ValueError, without the URL's password.

    Its pool has no upper end: a worker has as many connections as it has bodies, and renewals never wait for one.
    """
    url = read_url(given)
    dialect_of(url.get_backend_name())
    _check_driver(url.get_backend_name(), url.get_driver_name())
    options: dict[str, Any] = {"max_overflow": -1, "hide_parameters": True}
    if url.get_backend_name() == "postgresql":
        options["connect_args"] = {name: value for name, value in _CONNECT.items() if name not in url.query}
    elif url.get_backend_name() in _MARIADB:
        options["connect_args"] = {name: value for name, value in _CONNECT_MARIADB.items() if name not in url.query}
        options |= level_of(url)
    elif _is_in_memory(url):
        raise ValueError(_IN_MEMORY)
    try:
        engine = create_engine(url, **options)
    except (ArgumentError, TypeError, ValueError):
        message = f"its URL has parts that {url.drivername} does not know"
        raise ValueError(message) from None
    except ModuleNotFoundError as error:
        message = f"its driver is not installed ({error.name}); {_EXTRAS.get(error.name or '', 'install it')}"
        raise ImportError(message, name=error.name) from error
    check_engine(engine)
    if engine.dialect.name in _MARIADB:
        event.listen(engine, "connect", _notice_a_lost_server)
    return engine


def level_of(url: URL) -> dict[str, Any]:
    """The options of an engine whose connections are all ours."""
    is_mariadb = url.get_backend_name() in _MARIADB
    return {"isolation_level": "READ COMMITTED", "execution_options": {OURS: True}} if is_mariadb else {}


def check_engine(engine: Engine) -> None:
    """Raise ValueError for an engine that cannot hold a ledger."""
    dialect = engine.dialect
    if dialect.is_async:
        message = "workers are synchronous: give an engine of create_engine, not of create_async_engine"
        raise ValueError(message)
    dialect_of(dialect.name)
    _check_driver(dialect.name, dialect.driver)
    let_others_run()
    if dialect.name == "sqlite" and _is_in_memory(engine.url):
        raise ValueError(_IN_MEMORY)


def _check_driver(name: str, driver: str) -> None:
    if name == "postgresql" and driver != "psycopg":
        message = f"a ledger on PostgreSQL needs postgresql+psycopg://, not postgresql+{driver}://"
        raise ValueError(message)
    if name in _MARIADB and driver != "pymysql":
        message = f"a ledger on MariaDB needs mariadb+pymysql://, not {name}+{driver}://"
        raise ValueError(message)


def shown(url: URL) -> str:
    """A URL without what may be secret: its password, and its options, which may hold another one."""
    return url.set(query={}).render_as_string(hide_password=True)


_IN_MEMORY: Final = (
    "a database in memory belongs to one connection, so it can hold no ledger; name a file, or use memory:// for tests"
)


def read_url(given: str | URL) -> URL:
    """Read a URL, with the driver that we use; raises ValueError, without the URL's password."""
    try:
        url = make_url(given)
    except (ArgumentError, ValueError):
        message = "it is no database URL; write postgresql+psycopg://user@host/database or sqlite:///file"
        raise ValueError(message) from None
    if url.drivername in {"postgres", "postgresql"}:
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in _MARIADB:
        return url.set(drivername=f"{url.drivername}+pymysql")
    return url


def _notice_a_lost_server(driver: Any, _record: Any) -> None:
    """The driver asks for keepalives, but leaves their times to the system: two hours, usually."""
    connected = driver._sock  # noqa: SLF001 - there is no other way to it
    if connected.family != getattr(socket, "AF_UNIX", None):
        for name, value in _KEEPALIVE.items():
            if hasattr(socket, name):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _is_in_memory(url: URL) -> bool:
    name = url.database or ""
    return name in {"", ":memory:", "file::memory:"} or url.query.get("mode") == "memory" or "mode=memory" in name
