"""A message out of the outbox is the message that Celery would have sent."""

import base64
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from celery import chain, chord, group
from kombu.connection import Connection
from kombu.entity import Exchange, Queue

from effectonce.domain.outbox import RELAYED
from tests.integration.outbox.conftest import Office
from tests.services import Fleet

VARIES = {"delivery_tag", "reply_to"}
"""What is new in each message, or differs between threads."""

OURS = {"origin", RELAYED}
"""Headers that tell who sent a message."""

NEW = {"correlation_id", "application_headers"}
"""Of a message with a new id; kombu gives RabbitMQ's headers a second time."""

ETA = datetime(2030, 1, 1, tzinfo=UTC)
QUEUES = {
    "bound": Queue("bound", Exchange("topics", type="topic"), routing_key="a.#", max_priority=5),
    "short": Queue("short", queue_arguments={"x-max-length": 100}, expires=60),
}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "priority": {"priority": 3},
    "eta": {"eta": ETA},
    "countdown": {"countdown": 30, "now": ETA},
    "expires": {"expires": datetime.now(UTC) + timedelta(days=300)},
    "headers": {"headers": {"trace": "ü", "nested": {"a": [1, None, True]}, "at": ETA, "price": Decimal("1.10")}},
    "serializer": {"serializer": "pickle"},
    "compression": {"compression": "zlib"},
    "pickle compressed": {"serializer": "pickle", "compression": "bzip2"},
    "limits": {"time_limit": 10, "soft_time_limit": 5, "shadow": "other name", "ignore_result": True},
    "transient": {"delivery_mode": "transient"},
    "property": {"app_id": "shop", "message_id": "m-1", "reply_to": "answers"},
    "queue by name": {"queue": "by-name"},
    "queue with arguments": {"queue": "short"},
    "routing key": {"exchange": "topics", "routing_key": "a.b", "queue": "bound"},
    "link": {"link": "self", "link_error": "self"},
    "stamps": {"stamped_headers": ["tenant"], "tenant": "acme"},
    "retries": {"retries": 2, "root_id": "root", "parent_id": "parent", "group_id": "g", "group_index": 1},
}


@pytest.fixture(scope="module", params=["redis", "amqp"])
def shared(fleet: Fleet, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An app with queues of every kind, on both brokers."""
    server = fleet.redis() if request.param == "redis" else fleet.rabbitmq()
    url = server.fresh_url()
    office = Office(url, f"sqlite:///{tmp_path_factory.mktemp('outbox') / 'effects.sqlite'}")
    office.app.conf.update(task_queues=[Queue("celery"), *QUEUES.values()], accept_content=["json", "pickle"])

    @office.app.task(name="receipt", shared=False)
    def receipt(*_args: Any, **_kwargs: Any) -> None: ...

    yield office
    office.close()
    server.put_back(url)


@pytest.fixture
def office(shared: Office) -> Iterator[Office]:
    """The same, with nothing in it."""
    yield shared
    vars(shared.once.dispatcher).pop("dispatch", None)
    shared.relay_all()
    _taken(shared)


@pytest.fixture
def receipt(office: Office) -> Any:
    """The task that is sent."""
    return office.app.tasks["receipt"]


@pytest.mark.parametrize("name", OPTIONS)
def test_a_message_is_what_a_plain_send_puts_on_the_broker(office: Office, receipt: Any, name: str) -> None:
    options = dict(OPTIONS[name])
    options |= {each: receipt.si(each) for each in ("link", "link_error") if each in options}
    for link in (options.get("link"), options.get("link_error")):
        if link is not None:
            link.freeze()

    def send() -> None:
        receipt.apply_async((1, "ä", [None]), {"key": {"x": 1.5}}, task_id="the-id", **options)

    send()
    plain = _taken(office)
    with office.once.outbox():
        send()
        assert _taken(office) == []
    stored = _taken(office)
    assert len(plain) == 1
    assert stored == plain


@pytest.mark.parametrize("by", ["process", "relay"])
def test_a_canvas_is_what_a_plain_send_puts_on_the_broker(office: Office, receipt: Any, by: str) -> None:
    for whole in (
        chain(receipt.s(1), receipt.s(2), receipt.s(3)),
        group(receipt.s(n) for n in range(3)),
        chord([receipt.s(n) for n in range(3)], receipt.s()),
        receipt.chunks([(n,) for n in range(5)], 2),
    ):
        whole.apply_async(task_id="the-id")
        plain = [_canonical(each) for each in _taken(office)]
        if by == "relay":
            office.dispatch_nothing()
        with office.once.outbox():
            whole.apply_async(task_id="the-id")
        if by == "relay":
            assert _taken(office) == []
            office.relay_all()
        assert [_canonical(each) for each in _taken(office)] == plain
        assert plain


def test_the_queue_of_a_message_is_declared_by_whoever_sends_it(office: Office, receipt: Any) -> None:
    """A relay may belong to an app that does not know the queue."""
    fresh = Queue("fresh", Exchange("fresh", type="direct", durable=True), routing_key="new", max_priority=4)
    office.dispatch_nothing()
    with office.once.outbox():
        receipt.apply_async(queue=fresh, priority=2)
    office.relay_all()
    assert len(_taken(office, "fresh", priority=4)) == 1


def _taken(office: Office, *queues: str, priority: int | None = None) -> list[dict[str, Any]]:
    """Everything that the broker has, as its client sees it, but for what varies."""
    found = []
    with Connection(office.app.conf.broker_url) as connection:
        channel = connection.channel()
        for name in queues or ("celery", "by-name", *QUEUES):
            queue = QUEUES.get(name) or Queue(name, max_priority=priority)
            queue(channel).declare()
            while (message := queue(channel).get(accept=["json", "pickle"])) is not None:
                message.ack()
                found.append(_shown(message))
    return found


def _shown(message: Any) -> dict[str, Any]:
    body = message.body.encode() if isinstance(message.body, str) else message.body
    properties = {name: value for name, value in message.properties.items() if name not in VARIES}
    if "expiration" in properties:  # milliseconds that are left at the send
        properties["expiration"] = round(int(properties["expiration"]), -5)
    return {
        "body": base64.b64encode(body).decode(),
        "headers": {name: value for name, value in message.headers.items() if name not in OURS},
        "properties": properties,
        "type": message.content_type,
        "encoding": message.content_encoding,
        "exchange": message.delivery_info.get("exchange"),
        "routing_key": message.delivery_info.get("routing_key"),
    }


def _is_new(header: str) -> bool:
    return header.endswith("id") or header == "group" or header in OURS


def _canonical(shown: dict[str, Any]) -> dict[str, Any]:
    """Ids of the members of a canvas are new each time; what is said of them is not."""
    headers = {
        name: value
        for name, value in shown["headers"].items()
        if not (name.endswith("id") or name == "group" or name in OURS)
    }
    properties = {name: value for name, value in shown["properties"].items() if name not in NEW}
    return {**shown, "headers": headers, "properties": properties, "body": len(shown["body"])}


def test_what_is_stored_is_what_is_sent(office: Office, receipt: Any) -> None:
    """By the writer and by a relay: the same bytes, from the same row."""
    office.dispatch_nothing()
    with office.once.outbox():
        receipt.apply_async(task_id="the-id")
    stored = [base64.b64encode(each.message.body).decode() for each in office.waiting()]
    office.relay_all()
    assert [each["body"] for each in _taken(office)] == stored
