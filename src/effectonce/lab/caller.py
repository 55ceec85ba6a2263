"""Who sends the messages: each one, and then the same again, as a caller does that got no answer.

The repeat is a message of its own, with an id of its own: no broker can know that it means the same. It comes some
milliseconds after the first, or when the first is done. Nothing here waits: `step` does what is due.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from celery.states import EXCEPTION_STATES, READY_STATES

from effectonce.lab.orders import Order

WINDOW = 24
"""Messages under way at most, before the next order is sent."""


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """One message of ours. *repeat_at* is the instant of its repeat, None if that waits for the answer."""

    task: str
    order: Order
    id: str
    answered: bool = False
    repeat_at: float | None = None


class Caller:
    """Sends *quiet* orders one each *pause* seconds, and others when told; every message twice, to every task.

    *state_of* asks the result backend for the state of a message.
    """

    def __init__(
        self, tasks: dict[str, Any], quiet: Iterable[Order], *, pause: float, state_of: Callable[[str], str]
    ) -> None:
        self._tasks = tasks
        self._state_of = state_of
        self._quiet = deque(quiet)
        self._pause = pause
        self._next_at = 0.0
        self._to_repeat: list[Message] = []
        self.under_way: list[Message] = []
        self.sent: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.repeated_early = 0
        """Repeats sent while the first was under way."""
        self.repeated_late = 0
        """Repeats sent when the first was done."""

    @property
    def is_done(self) -> bool:
        """Tell whether everything was sent, repeated and answered."""
        return not (self._quiet or self._to_repeat or self.under_way)

    def has_answers_for(self, order: Order) -> bool:
        """Tell whether *order* is sent, repeated and answered, as far as it was begun."""
        return not any(message.order is order for message in (*self._to_repeat, *self.under_way))

    def hurry(self) -> None:
        """Send the quiet orders that are left as fast as they are answered."""
        self._pause = 0.0

    def send(self, order: Order) -> None:
        """Charge *order* by every task, and remember to repeat it."""
        for task in self._tasks:
            message = self._send(task, order)
            message.repeat_at = None if order.gap is None else time.monotonic() + order.gap
            self._to_repeat.append(message)

    def step(self) -> None:
        """Take in the answers that have come, and send what is due."""
        self._take_answers()
        self._repeat()
        now = time.monotonic()
        if self._quiet and now >= self._next_at and len(self.under_way) < WINDOW:
            self._next_at = now + self._pause
            self.send(self._quiet.popleft())

    def _take_answers(self) -> None:
        for message in self.under_way:
            state = self._state_of(message.id)
            if state in READY_STATES:
                message.answered = True
                self.answered[message.task] += 1
                self.failed[message.task] += state in EXCEPTION_STATES
        self.under_way = [message for message in self.under_way if not message.answered]

    def _repeat(self) -> None:
        due = [first for first in self._to_repeat if _is_due(first)]
        for first in due:
            self._to_repeat.remove(first)
            self._send(first.task, first.order)
            if first.answered:
                self.repeated_late += 1
            else:
                self.repeated_early += 1

    def _send(self, task: str, order: Order) -> Message:
        # Only the id is kept: an AsyncResult that outlives its server waits for it when it is collected.
        sent = self._tasks[task].delay(order.number, order.amount, order.seconds).id
        message = Message(task=task, order=order, id=sent)
        self.under_way.append(message)
        self.sent[task] += 1
        return message


def _is_due(first: Message) -> bool:
    return first.answered if first.repeat_at is None else time.monotonic() >= first.repeat_at
