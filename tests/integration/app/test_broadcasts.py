"""A copy of a broadcast message goes to one worker: sent to the exchange again it would be one more at each."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from celery import Celery
from celery.worker.request import Request
from kombu.common import Broadcast
from kombu.connection import Connection
from kombu.entity import Queue

from effectonce import EffectOnce, Leased
from effectonce.app.copies import put_off
from effectonce.app.worker_request import guarded_request

_numbers = itertools.count()


class Newsroom:
    """Two workers' queues of one broadcast exchange, and an ordinary queue."""

    def __init__(self, broker: str, *, ordinary: bool = True) -> None:
        name = f"news{next(_numbers)}"
        self.broker = broker
        self.own = Broadcast(name, queue=f"{name}.one")
        self.others = Broadcast(name, queue=f"{name}.two")
        self.ordinary = Queue(f"{name}.ordinary")
        self.app = Celery(name, broker=broker, backend="cache+memory://", set_as_current=False)
        self.app.conf.update(
            task_queues=[self.own, *([self.ordinary] if ordinary else [])],
            task_default_queue=self.ordinary.name,
        )
        self.once = EffectOnce(self.app, ledger=f"memory://{name}")
        self.task = self.app.task(_tell, name=f"{name}.tell", once=Leased("tell:{news}"))
        self.own = self.app.amqp.queues[self.own.name]  # Celery gives it the key that it sends with
        self.others.routing_key = self.own.routing_key
        self.came: list[Any] = []

    def deliver(self) -> Any:
        """Broadcast a message; the request that this worker makes of it."""
        with Connection(self.broker) as connection:
            channel = connection.channel()
            for queue in (self.own, self.others):
                queue(channel).declare()
            with connection.Consumer(self.own, callbacks=[self._take], accept=["json"]):
                listen(connection)
                self.task.apply_async(("sun",), queue=self.own, declare=[self.own.exchange])
                while not self.came:
                    connection.drain_events(timeout=30)
        message = self.came.pop()
        request = guarded_request(Request)(message, app=self.app, task=self.task)._context
        request.called_directly = False
        return request

    def _take(self, _body: Any, message: Any) -> None:
        message.ack()
        self.came.append(message)

    def taken(self, queue: Queue) -> list[Any]:
        """What is in a queue."""
        with Connection(self.broker) as connection:
            bound = queue(connection.channel())
            bound.declare()
            found = []
            while (message := bound.get(no_ack=True, accept=["json"])) is not None:
                found.append(message)
            return found


def listen(connection: Connection) -> None:
    """Redis subscribes to broadcasts when its consumer first looks for messages."""
    with suppress(TimeoutError):
        connection.drain_events(timeout=0.1)


def _tell(news: str) -> str:
    return news


@pytest.fixture
def newsrooms() -> Iterator[Callable[..., Newsroom]]:
    opened: list[Newsroom] = []

    def newsroom(*args: Any, **kwargs: Any) -> Newsroom:
        opened.append(Newsroom(*args, **kwargs))
        return opened[-1]

    yield newsroom
    for each in opened:
        each.once.ledger.close()
        each.app.close()


def test_on_rabbitmq_it_goes_to_this_workers_own_queue(newsrooms: Callable[..., Newsroom], amqp_url: str) -> None:
    room = newsrooms(amqp_url)
    with Connection(amqp_url) as keeper:
        channel = keeper.channel()
        for queue in (room.own, room.others):
            Queue(queue.name, queue.exchange, auto_delete=False)(channel).declare()  # kept while nobody consumes
        room.own.auto_delete = room.others.auto_delete = False
        request = room.deliver()
        assert len(room.taken(room.others)) == 1
        put_off(room.once.confirmed, room.task, request, delay=0)
        (copy,) = room.taken(room.own)
        assert copy.headers["id"] == request.id
        assert (room.taken(room.others), room.taken(room.ordinary)) == ([], [])
        again = guarded_request(Request)(copy, app=room.app, task=room.task)._context
        again.called_directly = False
        put_off(room.once.confirmed, room.task, again, delay=0)
        assert [each.headers["id"] for each in room.taken(room.own)] == [request.id], "and so does a copy of the copy"
        assert room.taken(room.others) == []


@pytest.mark.parametrize("ordinary", [True, False])
def test_on_redis_it_goes_to_an_ordinary_queue(
    newsrooms: Callable[..., Newsroom], redis_url: str, ordinary: bool
) -> None:
    room = newsrooms(redis_url, ordinary=ordinary)
    request = room.deliver()
    with Connection(redis_url) as connection:
        heard: list[str] = []

        def hear(_body: Any, message: Any) -> None:
            message.ack()
            heard.append(message.headers["id"])

        with connection.Consumer(room.others, callbacks=[hear], accept=["json"]):
            listen(connection)
            put_off(room.once.confirmed, room.task, request, delay=0)
            assert [each.headers["id"] for each in room.taken(room.ordinary)] == [request.id]
            room.task.apply_async(("moon",), queue=room.own, declare=[room.own.exchange], task_id="next")
            while not heard:
                connection.drain_events(timeout=30)
            assert heard == ["next"], "nothing was broadcast before"
