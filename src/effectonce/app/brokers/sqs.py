"""SQS: each receipt of a message has a time until which it is invisible to others, and the holder may move it.

Ten receipts go in one call. The timeout is the queue's own: kombu sets its option only on queues that it creates, and
a queue that was there before, or is predefined, may have a shorter one. SQS refuses to hold a message longer than
twelve hours in all; it comes again then.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from effectonce.app.brokers.held import describe, held_by
from effectonce.ports import Described
from effectonce.ports.outbox import BrokerAway

_BATCH: Final = 10
"""Entries that SQS takes in one call."""

_GONE: Final = frozenset({"MessageNotInflight", "ReceiptHandleIsInvalid", "InvalidParameterValue"})
"""Codes for a receipt that is not good any more; the last is also the answer after twelve hours."""


class SqsDeliveries:
    """What one SQS channel holds."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._timeouts: dict[str, float] = {}

    @property
    def timeout(self) -> float:
        """The shortest visibility timeout of the queues that this channel consumes, in seconds."""
        with suppress(BrokerAway), _answering():
            urls = {queue: self._channel._new_queue(queue) for queue in self._channel._active_queues}  # noqa: SLF001 - listed in test_celery_names
            found = [self._timeout_of(queue, url) for queue, url in urls.items()]
            return min([self._option, *found])
        return self._option

    @property
    def _option(self) -> float:
        return float(self._channel.visibility_timeout)

    def held(self) -> Mapping[str, Any]:
        """The messages by their receipts, without those that were deleted when they came."""
        return {
            tag: message for tag, message in held_by(self._channel).items() if "sqs_message" in message.delivery_info
        }

    def describe(self, message: Any) -> Described:
        """What *message* says of itself."""
        return describe(message)

    def renew(self, tags: Sequence[str]) -> frozenset[str]:
        """One call for each ten messages of a queue."""
        held, gone = held_by(self._channel), set[str]()
        queues: dict[tuple[str, str], list[str]] = defaultdict(list)
        for tag in tags:
            if tag in held:
                info = held[tag].delivery_info
                queues[info["routing_key"], info["sqs_queue"]].append(tag)
        with _answering():
            for (queue, url), receipts in queues.items():
                for start in range(0, len(receipts), _BATCH):
                    gone |= self._touch(queue, url, receipts[start : start + _BATCH])
        return frozenset(gone)

    def _touch(self, queue: str, url: str, receipts: Sequence[str]) -> set[str]:
        seconds = int(self._timeout_of(queue, url))
        entries = [
            {"Id": str(at), "ReceiptHandle": receipt, "VisibilityTimeout": seconds}
            for at, receipt in enumerate(receipts)
        ]
        answer = self._client(queue).change_message_visibility_batch(QueueUrl=url, Entries=entries)
        return {receipts[int(each["Id"])] for each in answer.get("Failed", ()) if _is_gone(each["Code"])}

    def _timeout_of(self, queue: str, url: str) -> float:
        """The queue's own timeout, asked once; kombu's option where asking is not allowed."""
        if url not in self._timeouts:
            try:
                answer = self._client(queue).get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
                self._timeouts[url] = float(answer["Attributes"]["VisibilityTimeout"])
            except ClientError:
                self._timeouts[url] = self._option
        return self._timeouts[url]

    def _client(self, queue: str) -> Any:
        return self._channel.sqs(queue=self._channel.canonical_queue_name(queue))

    def sweep(self) -> None:
        """Nothing: SQS gives messages back by itself."""

    def close(self) -> None:
        """Nothing: the clients are the channel's."""


def _is_gone(code: str) -> bool:
    return code.rpartition("#")[2].rpartition(".")[2] in _GONE


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except (ClientError, BotoCoreError, OSError) as error:
        raise BrokerAway(str(error)) from error
