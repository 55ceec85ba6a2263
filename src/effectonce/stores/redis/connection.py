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
from redis.sentinel import Sentinel

from effectonce.errors import SettingsInvalid
from effectonce.stores.redis.addresses import Address, read_address
from effectonce.stores.redis.replicas import Replicas, split_wait

PATIENCE: Final = 5.0
"""Seconds to wait for a connection, and for an answer."""

_UNREADABLE: Final = (
    "effectonce_ledger: this Redis URL cannot be read; write redis://[user:password@]host[:port][/number], "
    "special characters percent-encoded, and options as redis-py names them"
)
_UNREADABLE_MANY: Final = (
    "effectonce_ledger: this Redis URL cannot be read; write redis+sentinel://[user:password@]host:port,host:port/service"
    "/number or redis+cluster://[user:password@]host:port,host:port, special characters percent-encoded"
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


def split_replicas(source: str | redis.Redis) -> tuple[Any, Replicas | None]:
    """Take ``wait`` and ``wait_ms`` out of a URL; raises SettingsInvalid."""
    if not isinstance(source, str):
        return source, None
    try:
        return split_wait(source)
    except ValueError:
        raise SettingsInvalid(faults=["effectonce_ledger: wait and wait_ms are whole numbers of at least 1"]) from None


def address_of(source: Any) -> Address | None:
    """The address that a URL of Sentinels or of a Cluster names, None for anything else; raises SettingsInvalid."""
    if not isinstance(source, str):
        return None
    try:
        return read_address(source)
    except ValueError:
        raise SettingsInvalid(faults=[_UNREADABLE_MANY]) from None  # the error itself may quote the password


def options_of(address: Address) -> dict[str, Any]:
    """Options of each connection: ours, and those of the URL before them."""
    return {"socket_timeout": PATIENCE, "socket_connect_timeout": PATIENCE, **address.options}


def sentinel_client(address: Address) -> redis.Redis:
    """A client of the master that Sentinels name; connects to nothing yet. It asks them again after a fail-over."""
    options = options_of(address)
    patience = {name: options[name] for name in ("socket_timeout", "socket_connect_timeout")}
    sentinel = Sentinel(address.hosts, sentinel_kwargs=patience)
    client: redis.Redis = sentinel.master_for(
        address.service, db=address.number, ssl=address.tls, **_once_more(), **options
    )
    return client


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


def _once_more() -> dict[str, Any]:
    """A lost answer is asked for once more. redis-py 5 heeds the errors of a `Retry` only if they are named again."""
    lost = [redis.ConnectionError]
    return {"retry": Retry(NoBackoff(), 1, supported_errors=tuple(lost)), "retry_on_error": lost}


def _pool(url: str) -> ConnectionPool:
    scheme, mark, rest = url.partition("://")
    ours: dict[str, Any] = {
        "socket_timeout": PATIENCE,
        "socket_connect_timeout": PATIENCE,
        **_once_more(),
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
