"""Two brokers, as far as a delivery can tell them apart.

Redis (kombu's transport): a message keeps its delivery tag for life, and the table of unacknowledged messages has one
row a tag. So the acknowledgement of either of two holders removes the row of the other, a stale rejection gives back
what another one works on, and neither touches a copy that is back in the list. A killed worker's messages come back
when their visibility ends.

RabbitMQ: each delivery has its own tag, which means nothing once its connection is gone; then the message comes back
at once.
"""

from dataclasses import dataclass
from typing import Protocol

from tests.model.worlds import Hand, Message, World


class Broker(Protocol):
    """What a game asks of its broker."""

    @property
    def flags(self) -> bool:
        """Whether it says that it delivered a message before."""
        ...

    @property
    def restores_late(self) -> bool:
        """Whether a killed worker's messages come back by themselves, later, and not by the broken connection."""
        ...

    def published(self, world: World, message: Message) -> World:
        """Take a new message."""
        ...

    def received(self, world: World, message: Message) -> tuple[World, int, Message]:
        """Give a message of the queue out; answers the token of the delivery."""
        ...

    def acked(self, world: World, hand: Hand) -> World:
        """Take an acknowledgement."""
        ...

    def requeued(self, world: World, token: int) -> World:
        """Give back what stands under this token, if anything does."""
        ...


@dataclass(frozen=True)
class Redis:
    """Tags are for life. *flags* False stands for a transport of its kind that does not say what it repeats."""

    flags: bool = True
    restores_late: bool = True

    def published(self, world: World, message: Message) -> World:
        """Take a new message under a tag that nothing has."""
        taken = {each.tag for each in world.queue} | {token for token, _ in world.unacked}
        taken |= {hand.message.tag for hand in world.hands}
        return world._replace(queue=(*world.queue, message._replace(tag=_free(taken))))

    def received(self, world: World, message: Message) -> tuple[World, int, Message]:
        """Give it out under its own tag."""
        queue = _less(world.queue, message)
        return world._replace(queue=queue, unacked=(*world.unacked, (message.tag, message))), message.tag, message

    def acked(self, world: World, hand: Hand) -> World:
        """Remove the row of this tag, whoever works on it."""
        return _without(world, hand.token)

    def requeued(self, world: World, token: int) -> World:
        """Move the row of this tag back to the list, whoever works on it."""
        found = [message for held, message in world.unacked if held == token]
        back = tuple(message._replace(flagged=message.flagged or self.flags) for message in found)
        return _without(world, token)._replace(queue=(*world.queue, *back))


@dataclass(frozen=True)
class RabbitMQ:
    """Each delivery has its own token. *limit*: a quorum queue's delivery limit, 0 for none."""

    flags: bool = True
    restores_late: bool = False
    limit: int = 0

    def published(self, world: World, message: Message) -> World:
        """Take a new message."""
        return world._replace(queue=(*world.queue, message._replace(tag=0)))

    def received(self, world: World, message: Message) -> tuple[World, int, Message]:
        """Give it out under a token that no living delivery has."""
        token = _free({held for held, _ in world.unacked} | {hand.token for hand in world.hands})
        given = world._replace(queue=_less(world.queue, message), unacked=(*world.unacked, (token, message)))
        return given, token, message

    def acked(self, world: World, hand: Hand) -> World:
        """Remove this delivery; nothing, if its connection is gone."""
        return _without(world, hand.token)

    def requeued(self, world: World, token: int) -> World:
        """Put this delivery back, or drop it when it was given out too often."""
        back: list[Message] = []
        for held, message in world.unacked:
            if held == token:
                drops = message.drops + 1 if self.limit else 0
                if not self.limit or drops <= self.limit:
                    back.append(message._replace(flagged=True, drops=drops))
        return _without(world, token)._replace(queue=(*world.queue, *back))


def _free(taken: set[int]) -> int:
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def _less(queue: tuple[Message, ...], message: Message) -> tuple[Message, ...]:
    at = queue.index(message)
    return queue[:at] + queue[at + 1 :]


def _without(world: World, token: int) -> World:
    return world._replace(unacked=tuple(pair for pair in world.unacked if pair[0] != token))
