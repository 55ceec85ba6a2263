"""Redis: what is held stands in a sorted set, with the time at which it was taken as its score.

kombu's ``restore_visible`` puts back whatever has a score older than the visibility timeout, whoever holds it. So
renewing is writing the time of now, with ``XX``: an entry that is not there any more was acknowledged or given to
somebody else, and writing it anew would bring a message back to life.

kombu sweeps every 100 s, or (5.7) as configured, and an idle gevent or eventlet worker never does. So each worker's
sweeper calls the same ``restore_visible``. Its mutex lives 300 s, and a worker that is killed while it holds it
keeps everybody from sweeping for that long; unless the user said how long, it lives one visibility timeout here. Two
that sweep at once do no harm: each message is restored in a transaction that watches it.
"""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import redis
from kombu.transport.redis import Channel, QoS

from effectonce.app.brokers.careful import restore_only_what_has_a_queue
from effectonce.app.brokers.held import describe, held_by
from effectonce.ports import Described
from effectonce.ports.outbox import BrokerAway

_CHUNK: Final = 1000
_CLOSED: Final = "the channel is closed; the worker is about to reconnect"


class RedisDeliveries:
    """What one Redis channel holds."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._pool = _own_pool(channel)
        self._client = channel._create_client()  # noqa: SLF001 - listed in test_celery_names
        self._client.connection_pool = self._pool or self._client.connection_pool
        _shorten_mutex(channel)
        restore_only_what_has_a_queue(channel)

    @staticmethod
    def has_timeout(channel: Any) -> bool:
        """Tell whether this channel's messages come back by themselves (not with ``ack_emulation`` off)."""
        return isinstance(channel.qos, QoS)

    @property
    def timeout(self) -> float:
        """The visibility timeout in seconds."""
        return float(self._channel.visibility_timeout)

    def held(self) -> Mapping[str, Any]:
        """The messages by their delivery tags."""
        return held_by(self._channel)

    def describe(self, message: Any) -> Described:
        """What *message* says of itself."""
        return describe(message)

    def renew(self, tags: Sequence[str]) -> frozenset[str]:
        """One pipeline of a command for each thousand; a second one only when some were missing."""
        with _answering(self._channel):
            return self._renew(tags)

    def _renew(self, tags: Sequence[str]) -> frozenset[str]:
        chunks = list(_chunks(tags))
        counts = self._touch(chunks)
        short = [tag for chunk, count in zip(chunks, counts, strict=True) if count < len(chunk) for tag in chunk]
        if not short:
            return frozenset()
        return frozenset(
            tag for tag, count in zip(short, self._touch([[tag] for tag in short]), strict=True) if not count
        )

    def _touch(self, chunks: Sequence[Sequence[str]]) -> Sequence[int]:
        """Write the time of now for each tag that is there; answers how many of each chunk were."""
        now = time.time()  # the clock that kombu writes and compares
        with self._client.pipeline(transaction=False) as pipe:
            for chunk in chunks:
                pipe.zadd(self._channel.unacked_index_key, dict.fromkeys(chunk, now), xx=True, ch=True)
            counts: Sequence[int] = pipe.execute()
        return counts

    def sweep(self) -> None:
        """Put back what is older than the timeout, unless somebody else is at it."""
        with _answering(self._channel):
            self._channel.qos.restore_visible(num=self._channel.unacked_restore_limit, interval=1)

    def close(self) -> None:
        """End the connections that are ours."""
        if self._pool is not None:
            self._pool.disconnect()


@contextmanager
def _answering(channel: Any) -> Iterator[None]:
    """Turn what the client raises into BrokerAway, and what a channel raises that was closed meanwhile too."""
    if channel.closed:
        raise BrokerAway(_CLOSED)
    try:
        yield
    except (redis.RedisError, OSError) as error:
        raise BrokerAway(str(error)) from error
    except AttributeError as error:
        if not channel.closed:
            raise
        raise BrokerAway(_CLOSED) from error


def _own_pool(channel: Any) -> redis.ConnectionPool | None:
    """A pool like the channel's that does not wait for ever.

    A Sentinel's pool finds the master by itself and is shared, and so is one of a transport that we do not know.
    """
    if type(channel)._get_pool is not Channel._get_pool:  # noqa: SLF001 - listed in test_celery_names
        return None
    patience = max(float(channel.visibility_timeout) / 6, 0.5)
    mine = {"socket_timeout": patience, "socket_connect_timeout": patience}
    given = {name: value for name, value in channel._connparams().items() if value is not None}  # noqa: SLF001 - listed
    return redis.ConnectionPool(**{**mine, **given})


def _shorten_mutex(channel: Any) -> None:
    if "unacked_mutex_expire" in channel.connection.client.transport_options:
        return
    expire = max(math.ceil(channel.visibility_timeout), 1)
    channel.unacked_mutex_expire = channel.qos.unacked_mutex_expire = min(expire, channel.unacked_mutex_expire)


def _chunks(tags: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(tags), _CHUNK):
        yield tags[start : start + _CHUNK]
