"""What a Redis channel holds, renewed and swept, without any worker: entries, tags, prefixes, the mutex."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from effectonce.app.brokers import deliveries_of
from effectonce.ports.outbox import BrokerAway
from tests.integration.visibility.sentinel import MASTER
from tests.services import Redis

QUEUE = "posts"
OLD = 10.0


class Post:
    """A channel that has taken messages, and the database behind it."""

    def __init__(self, url: str, database: str, **options: Any) -> None:
        self.prefix = options.get("global_keyprefix", "")
        self.connection = Connection(url, transport_options={"visibility_timeout": 3, **options})
        self.channel: Any = self.connection.channel()
        self.queue = Queue(QUEUE)(self.channel)
        self.queue.declare()
        self.deliveries = deliveries_of(self.channel)
        self.database: Any = redis.Redis.from_url(database, decode_responses=True)

    def take(self, number: int = 1, **options: Any) -> list[Any]:
        with self.connection.Producer() as producer:
            for _ in range(number):
                producer.publish({}, routing_key=QUEUE, **options)
        return [self.queue.get() for _ in range(number)]

    def grow_old(self) -> None:
        """As if all that is held had been taken, or renewed last, long ago."""
        for tag in self.ages():
            self.database.zadd(f"{self.prefix}unacked_index", {tag: time.time() - OLD})

    def ages(self) -> dict[str, float]:
        now = time.time()
        entries = self.database.zrange(f"{self.prefix}unacked_index", 0, -1, withscores=True)
        return {tag: now - score for tag, score in entries}

    def queued(self) -> int:
        return sum(int(self.database.llen(f"{self.prefix}{QUEUE}{step}")) for step in ("", "\x06\x166"))

    def close(self) -> None:
        self.deliveries.close()
        self.connection.release()
        self.database.close()


@pytest.fixture
def open_post(redis_url: str) -> Iterator[Callable[..., Post]]:
    opened: list[Post] = []

    def make(url: str = redis_url, **options: Any) -> Post:
        post = Post(url, redis_url, **options)
        opened.append(post)
        return post

    yield make
    for post in opened:
        post.close()


@pytest.fixture(params=["plain", "prefix", "sentinel"])
def post(
    request: pytest.FixtureRequest,
    open_post: Callable[..., Post],
    redis_url: str,
    through_sentinel: Callable[[str], str],
) -> Post:
    if request.param == "prefix":
        return open_post(global_keyprefix="shop:")
    if request.param == "sentinel":
        return open_post(through_sentinel(redis_url), master_name=MASTER)
    return open_post()


def test_what_is_renewed_is_not_swept(post: Post) -> None:
    messages = post.take(3)
    post.grow_old()
    assert post.deliveries.renew(list(post.deliveries.held())) == frozenset()
    post.deliveries.sweep()
    assert set(post.ages()) == {message.delivery_tag for message in messages}
    assert max(post.ages().values()) < 3
    assert post.queued() == 0


def test_what_nobody_renews_is_swept(open_post: Callable[..., Post]) -> None:
    post = open_post(global_keyprefix="shop:")
    post.take(2)
    post.grow_old()
    post.deliveries.sweep()
    assert (post.ages(), post.queued()) == ({}, 2)


def test_what_is_acknowledged_or_given_away_is_missing_and_not_brought_back(open_post: Callable[..., Post]) -> None:
    post = open_post()
    done, given, kept = post.take(3)
    done.ack()
    post.database.zrem(f"{post.prefix}unacked_index", given.delivery_tag)
    tags = [message.delivery_tag for message in (done, given, kept)]
    assert post.deliveries.renew(tags) == {done.delivery_tag, given.delivery_tag}
    assert set(post.ages()) == {kept.delivery_tag}


def test_what_is_held_is_what_was_delivered_and_not_done(open_post: Callable[..., Post]) -> None:
    post = open_post()
    acked, rejected, requeued, kept = post.take(4)
    acked.ack()
    rejected.reject()
    requeued.requeue()
    assert set(post.deliveries.held()) == {kept.delivery_tag}


def test_many_are_renewed_in_one_go(open_post: Callable[..., Post]) -> None:
    post = open_post()
    tags = {f"tag-{number}": 1.0 for number in range(2500)}
    post.database.zadd("unacked_index", tags)
    assert post.deliveries.renew([*tags, "unknown"]) == {"unknown"}
    assert max(post.ages().values()) < 3


def test_a_message_goes_back_to_the_list_of_its_priority(open_post: Callable[..., Post]) -> None:
    post = open_post(priority_steps=[0, 6])
    post.take(priority=6)
    post.grow_old()
    post.deliveries.sweep()
    assert post.database.llen(f"{QUEUE}\x06\x166") == 1


def test_a_worker_killed_in_its_sweep_holds_the_mutex_for_one_timeout(open_post: Callable[..., Post]) -> None:
    """The 300 s that kombu gives it would keep all others from sweeping for as long."""
    post = open_post()
    assert post.channel.qos.unacked_mutex_expire == 3
    assert open_post(visibility_timeout=3600).channel.qos.unacked_mutex_expire == 300


def test_a_mutex_that_the_user_set_is_left_alone(open_post: Callable[..., Post]) -> None:
    assert open_post(unacked_mutex_expire=42).channel.qos.unacked_mutex_expire == 42


def test_without_acknowledgements_there_is_nothing_to_renew(redis_url: str) -> None:
    with Connection(redis_url, transport_options={"ack_emulation": False}) as connection:
        assert deliveries_of(connection.channel()) is None


def test_a_server_that_stands_still_is_not_waited_for(open_post: Callable[..., Post], redis_server: Redis) -> None:
    post = open_post()
    tags = [message.delivery_tag for message in post.take()]
    redis_server.pause()
    began = time.monotonic()
    with pytest.raises(BrokerAway):
        post.deliveries.renew(tags)
    assert time.monotonic() - began < 3
    redis_server.resume()
    assert post.deliveries.renew(tags) == frozenset()


def test_a_sweep_by_a_worker_that_knows_no_queue_for_it_loses_no_message(open_post: Callable[..., Post]) -> None:
    """Left alone, kombu removes the message of a topic exchange that it never declared, and puts it nowhere."""
    there, elsewhere = open_post(), open_post()
    mails = Queue("mails", Exchange("mail", type="topic"), routing_key="mail.#")(there.channel)
    mails.declare()
    with there.connection.Producer() as producer:
        producer.publish({}, exchange="mail", routing_key="mail.now")
    tag = mails.get().delivery_tag
    there.grow_old()
    elsewhere.deliveries.sweep()
    elsewhere.channel.connection.cycle.maybe_restore_messages()
    assert set(there.ages()) == {tag}
    there.deliveries.sweep()
    assert (there.ages(), there.database.llen("mails")) == ({}, 1)


def test_a_closed_channel_is_no_error(open_post: Callable[..., Post]) -> None:
    post = open_post()
    post.take()
    post.channel.close()
    with pytest.raises(BrokerAway, match="closed"):
        post.deliveries.sweep()
