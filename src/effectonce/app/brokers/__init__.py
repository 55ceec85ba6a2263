"""What brokers do to a message that a worker holds for long, and how a worker says that it still holds it.

Redis, SQS and PGMQ give a message to somebody else when it was not acknowledged within a visibility timeout. Each has a
module here that can *renew* it. They rest on names inside kombu's transports, which
``tests/unit/test_celery_names.py`` holds. A kombu that we do not know is left alone: `why_not_renewed` says so, and
nothing is renewed.
"""

from collections.abc import Mapping
from typing import Any, Final

import kombu

from effectonce.app.requests import transport_of

KNOWN_KOMBU: Final = ("5.4", "5.5", "5.6", "5.7")
"""Versions whose transports were read and tried; a new one joins when its names hold."""

_RENEWED: Final = frozenset({"redis", "sqs", "pgmq"})

_VISIBILITY: Final[Mapping[str, float]] = {"redis": 3600.0, "sqs": 1800.0, "pgmq": 1800.0}
"""Seconds after which a broker gives a held message to somebody else, where nothing else is configured."""


def visibility_timeout(app: Any) -> float | None:
    """Seconds after which the broker of *app* gives a held message to somebody else; None for one that never does."""
    default = _VISIBILITY.get(transport_of(app))
    if default is None:
        return None
    options = app.conf.broker_transport_options or {}
    return float(options.get("visibility_timeout") or default)


def deliveries_of(channel: Any) -> Any:
    """What *channel* holds and how to renew it; None where nothing comes back by itself."""
    if channel is None:
        return None
    if channel.connection.driver_type == "redis":
        from effectonce.app.brokers.redis import RedisDeliveries  # noqa: PLC0415 - only the broker in use is loaded

        return RedisDeliveries(channel) if RedisDeliveries.has_timeout(channel) else None
    if channel.connection.driver_type == "sqs":
        from effectonce.app.brokers.sqs import SqsDeliveries  # noqa: PLC0415 - only the broker in use is loaded

        return SqsDeliveries(channel)
    if channel.connection.driver_type == "pgmq":
        from effectonce.app.brokers.pgmq import PgmqDeliveries  # noqa: PLC0415 - only the broker in use is loaded

        return PgmqDeliveries(channel)
    return None


def why_not_renewed(app: Any) -> str | None:
    """Say what keeps us from renewing on this broker with this kombu; None when nothing does."""
    driver, version = transport_of(app), kombu.__version__
    if driver not in _RENEWED:
        return f"this version of effectonce cannot renew on {driver!r}"
    if ".".join(version.split(".")[:2]) not in KNOWN_KOMBU:
        return f"kombu {version} is not known to this version of effectonce (it knows {', '.join(KNOWN_KOMBU)})"
    return None
