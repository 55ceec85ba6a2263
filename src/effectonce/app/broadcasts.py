"""Where the copy of a broadcast message goes.

A message of a fanout exchange is at every worker already. A copy that went to the exchange again would be one more at
each of them, and each of those that is busy would send it again: their number would grow without end. So it goes to one
place. RabbitMQ takes a message for a single queue, this worker's own. Redis (and kombu's other virtual transports)
delivers broadcasts beside the queues, so nothing that is put into that queue is ever read; there the copy goes to an
ordinary queue of this worker.
"""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kombu.entity import Queue

from effectonce.app.requests import transport_of

logger = logging.getLogger("effectonce")

_ADDRESS: Final = ("exchange", "routing_key", "queue")


def to_one_worker(app: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a send, so that a broadcast goes to one worker; those of other messages are left as they are."""
    own = _broadcast_queue(app, options)
    if own is None:
        return dict(options)
    rest = {name: value for name, value in options.items() if name not in _ADDRESS}
    if transport_of(app) == "amqp":
        return {**rest, "queue": Queue(own.name), "declare": []}
    ordinary = next((name for name, queue in app.amqp.queues.consume_from.items() if not _is_broadcast(queue)), None)
    if ordinary is None:
        ordinary = app.conf.task_default_queue
        logger.warning("a copy of a broadcast message goes to queue %r: this worker reads no ordinary queue", ordinary)
    return {**rest, "queue": ordinary}


def _broadcast_queue(app: Any, options: Mapping[str, Any]) -> Any:
    """The queue that a message came to as one of many; None for an ordinary message."""
    named = options.get("queue")
    for queue in _broadcast_queues(app):
        if named == queue.name or (named is None and options.get("exchange") == queue.exchange.name):
            return queue
    return None


def _broadcast_queues(app: Any) -> Iterator[Any]:
    return (queue for queue in app.amqp.queues.values() if _is_broadcast(queue))


def _is_broadcast(queue: Any) -> bool:
    return queue.exchange is not None and queue.exchange.type == "fanout"
