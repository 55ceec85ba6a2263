"""The client that a ledger talks through, and what it is called without its password.

A client that we make gives up after five seconds without an answer, so a server that hangs is a ledger that cannot be
asked. It asks again once, and only when the connection broke (one that idled while the server was restarted): every
script answers a second asking as it did the first. After a time out it does not, since the time is spent.
"""

from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.connection import ConnectionPool, SSLConnection, UnixDomainSocketConnection
from redis.retry import Retry

from effectonce.errors import SettingsInvalid

PATIENCE: Final = 5.0
"""Seconds to wait for a connection, and for an answer."""

_UNREADABLE: Final = (
    "effectonce_ledger: this Redis URL cannot be read; write redis://[user:password@]host[:port][/number], "
    "special characters percent-encoded, and options as redis-py names them"
)
_SCHEMES: Final = {"valkey": "redis", "valkeys": "rediss"}


def open_client(source: str | redis.Redis) -> redis.Redis:
    """Make a client of a URL, or check a given one; connects to nothing. Raises SettingsInvalid."""
    given: Any = source
    if isinstance(source, str):
        return redis.Redis(connection_pool=_pool(source))
    if not isinstance(given, redis.Redis):
        fault = f"effectonce_ledger: {type(source).__name__} is not a redis.Redis or the URL of one"
        raise SettingsInvalid(faults=[fault])
    if source.connection_pool.connection_kwargs.get("decode_responses"):
        fault = (
            "effectonce_ledger: a client with decode_responses=True cannot carry bytes; give one without it, or a URL"
        )
        raise SettingsInvalid(faults=[fault])
    return source


def public_name(client: redis.Redis) -> str:
    """The URL of a client, without user, password and options."""
    pool = client.connection_pool
    options = pool.connection_kwargs
    if issubclass(pool.connection_class, UnixDomainSocketConnection):
        return f"unix://{options.get('path', '')}?db={options.get('db', 0)}"
    scheme = "rediss" if issubclass(pool.connection_class, SSLConnection) else "redis"
    host = options.get("host", "localhost")
    shown = f"[{host}]" if ":" in host else host
    return f"{scheme}://{shown}:{options.get('port', 6379)}/{options.get('db', 0)}"


def _pool(url: str) -> ConnectionPool:
    scheme, mark, rest = url.partition("://")
    ours: dict[str, Any] = {
        "socket_timeout": PATIENCE,
        "socket_connect_timeout": PATIENCE,
        "retry": Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,)),
    }
    try:
        pool = ConnectionPool.from_url(f"{_SCHEMES.get(scheme, scheme)}{mark}{rest}", **ours)
        pool.connection_kwargs["decode_responses"] = False
        pool.connection_class(**pool.connection_kwargs)
    except TypeError as error:
        fault = f"effectonce_ledger: an option in the URL is not known to redis-py: {error}"
        raise SettingsInvalid(faults=[fault]) from error
    except ValueError:
        raise SettingsInvalid(faults=[_UNREADABLE]) from None  # the error itself may quote the password
    return pool
