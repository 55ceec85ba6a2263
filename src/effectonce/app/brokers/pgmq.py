"""PGMQ: each message has an instant until which it is invisible to others, and the holder may move it.

All messages of a queue are moved in one statement. PGMQ counts how often a message was read, and answers the count: one
that is larger than ours was given to somebody else meanwhile. Its new holder has gained some time then, and no harm.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from effectonce.app.brokers.held import describe, held_by
from effectonce.ports import Described
from effectonce.ports.outbox import BrokerAway


class PgmqDeliveries:
    """What one PGMQ channel holds."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    @property
    def timeout(self) -> float:
        """The visibility timeout that this channel reads with, in seconds."""
        return float(self._channel.visibility_timeout)

    def held(self) -> Mapping[str, Any]:
        """The messages by their delivery tags, without those that were deleted when they came."""
        return {
            tag: message for tag, message in held_by(self._channel).items() if "pgmq_msg_id" in message.delivery_info
        }

    def describe(self, message: Any) -> Described:
        """What *message* says of itself."""
        return describe(message)

    def renew(self, tags: Sequence[str]) -> frozenset[str]:
        """One statement for each queue."""
        held, queues = held_by(self._channel), defaultdict[str, dict[int, str]](dict)
        for tag in tags:
            if tag in held:
                info = held[tag].delivery_info
                queues[info["pgmq_queue"]][int(info["pgmq_msg_id"])] = tag
        gone = set[str]()
        with self._answering():
            for queue, numbers in queues.items():
                found = self._channel.pgmq.set_vt(queue, list(numbers), int(self.timeout))
                reads = {int(message.msg_id): int(message.read_ct) for message in found}
                gone |= {tag for number, tag in numbers.items() if reads.get(number) != _reads_of(held[tag])}
        return frozenset(gone)

    def sweep(self) -> None:
        """Nothing: PGMQ gives messages back by itself."""

    def close(self) -> None:
        """Nothing: the client is the connection's."""

    @contextmanager
    def _answering(self) -> Iterator[None]:
        transport = self._channel.connection
        try:
            yield
        except (OSError, *transport.connection_errors, *transport.channel_errors) as error:
            raise BrokerAway(str(error)) from error


def _reads_of(message: Any) -> int:
    return int(message.delivery_info["pgmq_message"]["read_ct"])
