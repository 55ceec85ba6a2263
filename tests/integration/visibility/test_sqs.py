"""The keeper of visibility on SQS, beside a stand-in for its API on this machine."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kombu.connection import Connection
from kombu.entity import Queue

from effectonce.app.brokers import deliveries_of
from effectonce.ports.outbox import BrokerAway
from tests.integration.visibility.conftest import Hire
from tests.integration.visibility.crew import TIMEOUT, Crew
from tests.integration.visibility.sqs import OPTIONS, Sqs

LONG = 3 * TIMEOUT
QUEUE = "celery"


@pytest.fixture
def channel(sqs: Sqs) -> Iterator[Any]:
    options = {**OPTIONS, "visibility_timeout": TIMEOUT}
    with Connection(sqs.url, transport_options=options) as connection:
        yield connection.channel()


def take(channel: Any, number: int) -> list[Any]:
    queue = Queue(QUEUE)(channel)
    queue.declare()
    with channel.connection.client.Producer() as producer:
        for _ in range(number):
            producer.publish({}, routing_key=QUEUE)
    return [queue.get() for _ in range(number)]


@pytest.mark.soak
@pytest.mark.timeout(240)
def test_on_sqs_a_living_worker_keeps_its_messages_and_a_dead_one_loses_them(
    hire: Hire, open_sqs: Callable[[], Sqs]
) -> None:
    """The ordinary run has the first crew too (test_workers.py); the one without the keeper runs a long body twice."""
    places = {"kept": open_sqs(), "without": open_sqs()}
    crews = {
        name: hire(
            name, broker=lambda _, sqs=sqs: sqs.url, options=OPTIONS, settings={"renew_visibility": name == "kept"}
        )
        for name, sqs in places.items()
    }
    kept, without = crews["kept"], crews["without"]
    for crew in crews.values():
        crew.start().start()
    for crew in crews.values():
        crew.wait_ready()
        crew.send("work", "long", LONG)
        crew.send("work", "later", 0, countdown=LONG)
    without.wait_noted("long:began", 2)
    kept.wait_noted("long:ended")
    kept.wait_noted("later:ended")
    kept.wait(lambda: not places["kept"].queues[QUEUE], "the queue is empty")
    assert {what: kept.bodies(what) for what in ("long", "later")} == {"long": 1, "later": 1}
    assert_comes_back(kept)


def assert_comes_back(crew: Crew) -> None:
    crew.send("hold", "orphan")
    crew.wait_noted("orphan:began")
    crew.worker_of(crew.notes("orphan:began")[0][0]).kill()
    killed = time.monotonic()
    crew.wait_noted("orphan:began", 2)
    crew.let_go("orphan")
    crew.wait_noted("orphan:ended")
    assert crew.notes("orphan:began")[1][1] - killed < 2 * TIMEOUT


def test_ten_messages_are_renewed_in_one_call(channel: Any, sqs: Sqs) -> None:
    take(channel, 21)
    deliveries = deliveries_of(channel)
    before = [stored.visible_at for stored in sqs.queues[QUEUE]]
    assert deliveries.renew(list(deliveries.held())) == frozenset()
    assert sqs.calls.count("ChangeMessageVisibilityBatch") == 3
    assert all(stored.visible_at > earlier for stored, earlier in zip(sqs.queues[QUEUE], before, strict=True))


def test_what_was_received_again_or_deleted_is_missing(channel: Any, sqs: Sqs) -> None:
    done, given, kept = take(channel, 3)
    deliveries = deliveries_of(channel)
    tags = list(deliveries.held())
    sqs.queues[QUEUE][1].handle = "of its next holder"
    del sqs.queues[QUEUE][0]
    assert deliveries.renew(tags) == {done.delivery_tag, given.delivery_tag}
    assert kept.delivery_tag in deliveries.held()


def test_the_timeout_of_a_queue_that_was_there_before_counts(channel: Any, sqs: Sqs) -> None:
    """The option of kombu is not applied to it."""
    sqs.answer("CreateQueue", {"QueueName": QUEUE, "Attributes": {"VisibilityTimeout": "1"}})
    take(channel, 1)
    channel._active_queues.append(QUEUE)
    assert deliveries_of(channel).timeout == 1


def test_a_service_that_is_away_makes_nothing_missing(channel: Any, sqs: Sqs) -> None:
    take(channel, 1)
    deliveries = deliveries_of(channel)
    tags = list(deliveries.held())
    sqs.queues.clear()
    with pytest.raises(BrokerAway):
        deliveries.renew(tags)
