"""Sending stored messages through kombu, and knowing that the broker has them.

One message goes through a producer that confirms. Many go together: on Redis in one pipeline, on RabbitMQ in a window
of confirmations, elsewhere one after the other. When a batch fails in a way that does not blame the broker, nobody can
tell which of its messages did it, so they are sent one by one: some of them twice, with the same ids.
"""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kombu.messaging import Producer

from effectonce.app.copies import PATIENCE, Confirmed
from effectonce.app.recorder import publication
from effectonce.domain.outbox import HOLD, Message
from effectonce.ports.outbox import BrokerAway

WINDOW: Final = 200
"""Messages of RabbitMQ that may be under way without a confirmation."""

_TIME: Final = HOLD / 2
"""Seconds in which a batch that is sent one by one must be through; the rest goes back."""

_TOO_SLOW: Final = "it is too slow"

_REDIS_AWAY: Final = ("OOM", "MISCONF", "READONLY", "LOADING", "NOREPLICAS", "CLUSTERDOWN", "MASTERDOWN")
"""Answers of a Redis that takes no message from anybody just now."""


class KombuBroker:
    """The app's broker; see `ports.Broker`."""

    def __init__(self, confirmed: Confirmed) -> None:
        self._confirmed = confirmed

    def send(self, messages: Sequence[Message]) -> Sequence[Exception | None]:
        """See `ports.Broker.send`."""
        if len(messages) > 1 and self._send_together(messages):
            return [None] * len(messages)
        end, answers = time.monotonic() + _TIME, list[Exception | None]()
        for message in messages:
            if time.monotonic() > end:
                raise BrokerAway(_TOO_SLOW, sent=_before_refusal(answers))
            try:
                answers.append(self._send_one(message))
            except BrokerAway as away:
                raise BrokerAway(str(away), sent=_before_refusal(answers)) from away
        return answers

    def _send_one(self, message: Message) -> Exception | None:
        try:
            with self._confirmed.acquire() as producer:
                producer._publish(*publication(message), **self._confirmed.options)  # noqa: SLF001 - listed
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._raise_if_away(error)
            return error
        return None

    def _raise_if_away(self, error: Exception) -> None:
        """Raise BrokerAway where an error is not a message's fault.

        A lost connection may be either: a message that the broker cannot read makes it hang up. So the broker is asked
        whether it takes connections.
        """
        chain = list(_chain(error))
        if any(_is_too_late(each) or str(each).startswith(_REDIS_AWAY) for each in chain):
            raise BrokerAway(_named(error)) from error
        if any(isinstance(each, self._confirmed.connection_errors) for each in chain):
            try:
                self._confirmed.ask()
            except Exception as silence:  # noqa: BLE001 - however it refuses
                raise BrokerAway(_named(silence)) from error

    def _send_together(self, messages: Sequence[Message]) -> bool:
        """Send as one; False when something was refused, so that each has to be tried by itself."""
        try:
            with self._confirmed.acquire() as producer:
                if producer.connection.transport.driver_type == "amqp":
                    _send_in_windows(producer.connection, messages)
                elif getattr(producer, "supports_batch_publish", False):
                    with producer.batch(len(messages)):
                        for message in messages:
                            producer._publish(*publication(message))  # noqa: SLF001 - listed in test_celery_names
                else:
                    return False
        except Exception as error:  # noqa: BLE001 - it is the answer
            self._raise_if_away(error)
            return False
        return True


def _send_in_windows(connection: Any, messages: Sequence[Message]) -> None:
    """Publish on a channel of its own, whose confirmations are counted from 1."""
    channel = connection.channel()
    try:
        _Window(connection, channel).send(messages)
    finally:
        channel.close()


class _Window:
    """Counts what RabbitMQ has confirmed on one channel."""

    def __init__(self, connection: Any, channel: Any) -> None:
        self._connection = connection
        self._producer = Producer(channel, auto_declare=False)
        self._open: set[int] = set()
        self._refused = False
        channel.confirm_select()
        channel.basic_publish = channel._basic_publish  # noqa: SLF001 - listed in test_celery_names
        channel.events["basic_ack"].add(self._on_ack)
        channel.events["basic_nack"].add(self._on_nack)

    def send(self, messages: Sequence[Message]) -> None:
        for tag, message in enumerate(messages, 1):
            self._producer._publish(*publication(message))  # noqa: SLF001 - listed in test_celery_names
            self._open.add(tag)
            if len(self._open) >= WINDOW:
                self._drain(WINDOW // 2)
        self._drain(0)
        if self._refused:
            raise ValueError("a message was refused")  # noqa: EM101, TRY003 - caught above

    def _drain(self, left: int) -> None:
        end = time.monotonic() + PATIENCE
        while len(self._open) > left:
            self._connection.drain_events(timeout=max(0.01, end - time.monotonic()))

    def _on_ack(self, tag: int, multiple: bool) -> None:  # noqa: FBT001 - amqp's own arguments
        self._open -= {each for each in self._open if each <= tag} if multiple else {tag}

    def _on_nack(self, tag: int, multiple: bool) -> None:  # noqa: FBT001 - amqp's own arguments
        self._refused = True
        self._on_ack(tag, multiple)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _before_refusal(answers: Sequence[Exception | None]) -> int:
    """How many of the first ones have arrived."""
    return next((nth for nth, answer in enumerate(answers) if answer is not None), len(answers))


def _is_too_late(error: BaseException) -> bool:
    """Whether the broker took too long to say that it has a message.

    redis-py is loaded only by those who use it: it costs more than all of this library.
    """
    redis = sys.modules.get("redis.exceptions")
    return isinstance(error, TimeoutError if redis is None else (TimeoutError, redis.TimeoutError))
