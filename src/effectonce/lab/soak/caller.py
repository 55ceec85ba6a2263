"""Who sends: each order, its repeats, and once more when all is over, to see that no key is stuck.

A send that fails is sent again, as a caller does that got no answer: it may be there twice. An answer is what the
result backend has.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from amqp.exceptions import AMQPError
from celery.states import READY_STATES, SUCCESS
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from effectonce.lab.soak.plan import Order

AGAIN: Final = 1.0
"""Seconds until a send that failed is tried again."""
FAULTS: Final = (KombuError, AMQPError, RedisError, OSError, TimeoutError)
"""What a send raises while its broker is away."""


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """One message of ours; *state* is the last that the result backend had."""

    id: str
    order: Order
    task: str
    state: str = "PENDING"

    @property
    def answered(self) -> bool:
        """Tell whether it has an outcome."""
        return self.state in READY_STATES


@dataclass(slots=True, kw_only=True)
class Caller:
    """Sends to *tasks* by name; *backend* knows the answers."""

    tasks: Any
    backend: Any
    messages: list[Message] = field(default_factory=list)
    refused: int = 0
    _due: list[tuple[float, str, Order]] = field(default_factory=list)

    def plan(self, orders: tuple[Order, ...], *, start: float) -> None:
        """Note when each order is to be sent, and sent again."""
        for order in orders:
            for gap in (0.0, *order.repeats):
                self._due.append((start + order.at + gap, order.task, order))

    def ask_again(self, orders: list[tuple[str, Order]]) -> None:
        """Send each of these once more, now."""
        self._due += [(0.0, task, order) for task, order in orders]

    @property
    def waits(self) -> bool:
        """Tell whether something is still to be sent."""
        return bool(self._due)

    def step(self) -> None:
        """Send what is due."""
        now = time.monotonic()
        due = [each for each in self._due if each[0] <= now]
        self._due = [each for each in self._due if each[0] > now]
        for place, (_, task, order) in enumerate(due):
            try:
                self._send(task, order)
            except FAULTS:
                self.refused += 1
                self._due += [(now + AGAIN, *each[1:]) for each in due[place:]]
                return

    def look(self) -> None:
        """Take in the answers that have come."""
        open_ones = [message for message in self.messages if not message.answered]
        for message in open_ones:
            message.state = self.backend.get_state(message.id)

    @property
    def unanswered(self) -> list[Message]:
        """Messages without an outcome."""
        return self.unanswered_since(0)

    def unanswered_since(self, first: int) -> list[Message]:
        """The same, of messages from number *first* on."""
        return [message for message in self.messages[first:] if not message.answered]

    @property
    def failed(self) -> Counter[str]:
        """How many messages ended otherwise than well, by state."""
        return Counter(each.state for each in self.messages if each.answered and each.state != SUCCESS)

    def _send(self, task: str, order: Order) -> None:
        words = (order.number,) if task == "note" else (order.number, order.seconds, order.retries)
        sent = self.tasks[task].apply_async(words, retry=False)
        # Only the id is kept: an AsyncResult that outlives its server waits for it when it is collected.
        self.messages.append(Message(id=sent.id, order=order, task=task))
