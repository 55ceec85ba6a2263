"""Redis: a sweep that puts back only what it finds a queue for.

Whoever sweeps restores messages of all queues of the database, and looks their queues up by exchange and routing key.
kombu takes an exchange that its channel has not declared for a direct one. So a worker that knows nothing of a topic
exchange finds no queue for its message, and the transaction then removes the message and puts it nowhere (kombu 5.4
to 5.7). Here such a message is left where it is, for a worker that consumes it.

The guard is an attribute of one ``qos`` object, so that it holds for kombu's own sweep in this worker as well.
"""

import logging
from typing import Any

from kombu.utils.encoding import bytes_to_str
from kombu.utils.json import loads

logger = logging.getLogger("effectonce")


def restore_only_what_has_a_queue(channel: Any) -> None:
    """Guard the restoring of *channel*; doing it again changes nothing."""
    qos = channel.qos
    if "restore_by_tag" in vars(qos):
        return
    restore, told = qos.restore_by_tag, set[str]()

    def restore_by_tag(tag: Any, client: Any = None, leftmost: bool = False) -> None:  # noqa: FBT001, FBT002 - kombu's own
        exchange = _without_queue(channel, tag, client)
        if exchange is None:
            restore(tag, client, leftmost)
        elif exchange not in told:
            told.add(exchange)
            logger.warning("messages of exchange %r are left to be restored by a worker that consumes them", exchange)

    qos.restore_by_tag = restore_by_tag


def _without_queue(channel: Any, tag: Any, client: Any) -> str | None:
    """The exchange of a message for which this channel finds no queue."""
    with channel.conn_or_acquire(client) as own:
        found = own.hget(channel.unacked_key, tag)
    if not found:
        return None
    _, exchange, routing_key = loads(bytes_to_str(found))
    return None if channel._lookup(exchange, routing_key) else str(exchange)  # noqa: SLF001 - listed in test_celery_names
