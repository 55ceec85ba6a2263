"""URLs of a Redis that is more than one server.

``redis+sentinel://[user:password@]host:port[,host:port ...]/service[/number]`` asks Sentinels who the master is.
``redis+cluster://[user:password@]host:port[,host:port ...]`` begins with these nodes of a Cluster. ``rediss+...``
speaks TLS. Options of redis-py may stand in the query, and ours: ``wait`` and ``wait_ms`` (see `replicas`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

SENTINEL: Final = "sentinel"
CLUSTER: Final = "cluster"

_PORTS: Final = {SENTINEL: 26379, CLUSTER: 6379}
_WHOLE: Final = frozenset({"db", "max_connections", "health_check_interval"})
_SECONDS: Final = frozenset({"socket_timeout", "socket_connect_timeout"})
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_SWITCHES: Final = frozenset({"socket_keepalive", "ssl_check_hostname", "require_full_coverage"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """What such a URL says. *options* are redis-py's for each connection."""

    kind: str
    tls: bool
    hosts: tuple[tuple[str, int], ...]
    service: str
    number: int
    options: Mapping[str, Any]

    @property
    def public(self) -> str:
        """The URL without user, password and options."""
        scheme = f"{'rediss' if self.tls else 'redis'}+{self.kind}"
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        return f"{scheme}://{hosts}/{self.service}/{self.number}" if self.kind == SENTINEL else f"{scheme}://{hosts}"


def read_address(url: str) -> Address | None:
    """Read a URL of several servers; None for one of a single server. Raises ValueError, without the password."""
    scheme, _, _ = url.partition("://")
    base, _, kind = scheme.partition("+")
    if kind not in _PORTS:
        return None
    told = urlsplit(url)
    login, _, places = told.netloc.rpartition("@")
    user, _, password = login.partition(":")
    parts = [part for part in told.path.split("/") if part]
    hosts = tuple(_host(place, _PORTS[kind]) for place in places.split(",") if place)
    service, *numbers = parts if kind == SENTINEL and parts else ("", *parts)
    if not hosts or bool(service) is not (kind == SENTINEL) or not _is_place(kind, numbers):
        message = f"write {base}+sentinel://host:port,host:port/service/number or {base}+cluster://host:port"
        raise ValueError(message)
    options = {name: _value(name, value) for name, value in parse_qsl(told.query)}
    if user:
        options["username"] = unquote(user)
    if password:
        options["password"] = unquote(password)
    return Address(
        kind=kind,
        tls=base in {"rediss", "valkeys"},
        hosts=hosts,
        service=unquote(service),
        number=int(numbers[0]) if numbers else 0,
        options=options,
    )


def _is_place(kind: str, numbers: list[str]) -> bool:
    """Whether a database is named, or none; a Cluster has one only."""
    return numbers in ([], ["0"]) or (kind == SENTINEL and len(numbers) == 1 and numbers[0].isdigit())


def _host(place: str, default: int) -> tuple[str, int]:
    told = urlsplit(f"//{place}")
    if not told.hostname:
        message = f"{place!r} is no host"
        raise ValueError(message)
    return told.hostname, told.port or default


def _value(name: str, text: str) -> Any:
    if name in _WHOLE:
        return int(text)
    if name in _SECONDS:
        return float(text)
    return text.lower() in _TRUE if name in _SWITCHES else text
