"""The copy of a delivery that is put off is the same message, but for what may not be the same."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from celery.worker.request import Request
from kombu.message import Message

from effectonce import EffectOnce, Leased
from effectonce.app.copies import put_off
from effectonce.app.worker_request import guarded_request

_numbers = itertools.count()

WRITTEN_BY_THE_BROKER = {"delivery_tag"}
NOT_THE_SAME = {"expires", "expiration", "effectonce_deferrals", "effectonce_sent"}
ONLY_SHOWN = {"origin", "argsrepr", "kwargsrepr"}
"""Celery writes these as properties, too, when a message is sent again by its signature."""

OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "compressed": {"compression": "gzip"},
    "transient": {"delivery_mode": 1},
    "answered elsewhere": {"correlation_id": "a call", "reply_to": "a queue"},
    "urgent": {"priority": 3},
    "with headers": {"headers": {"tenant": "blue"}},
    "stamped": {"stamped_headers": ["visitor"], "visitor": ["web"]},
    "shown otherwise": {"shadow": "billing", "argsrepr": "(...)"},
    "limited": {"time_limit": 5, "soft_time_limit": 3},
    "without a result": {"ignore_result": True},
    "expiring": {"expires": 100},
    "pickled": {"serializer": "pickle"},
}


@pytest.fixture
def carried(once: EffectOnce, app: Celery) -> Callable[..., tuple[Message, Message]]:
    """Send a message with these options; it and its copy, as the broker gives them."""
    app.conf.accept_content = ["json", "pickle"]
    app.conf.task_default_queue = f"copies-{next(_numbers)}"  # a broker in memory is one for all tests

    @app.task(name="work", once=Leased("work:{x}"))
    def work(x: int) -> int:
        return x

    def taken() -> Message:
        with app.connection_for_read() as connection:
            queue = app.amqp.queues[app.conf.task_default_queue](connection.default_channel)
            message = queue.get(no_ack=True, accept=["json", "pickle"])
            assert isinstance(message, Message)
            return message

    def carry(**options: Any) -> tuple[Message, Message]:
        app.tasks["work"].apply_async((1,), link=app.tasks["work"].s(2), **options)
        message = taken()
        request = guarded_request(Request)(message, app=app, task=app.tasks["work"])._context
        request.called_directly = False
        put_off(once.confirmed, app.tasks["work"], request, delay=0)
        return message, taken()

    return carry


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_copy_is_like_its_message(carried: Callable[..., tuple[Message, Message]], options: dict[str, Any]) -> None:
    message, copy = carried(**options)
    assert [list(copy.decode()[0]), *copy.decode()[1:]] == [list(message.decode()[0]), *message.decode()[1:]]
    assert (copy.content_type, copy.content_encoding) == (message.content_type, message.content_encoding)
    assert _without(copy.headers, NOT_THE_SAME) == _without(message.headers, NOT_THE_SAME)
    ours = WRITTEN_BY_THE_BROKER | NOT_THE_SAME | ONLY_SHOWN
    assert _without(copy.properties, ours) == _without(message.properties, ours)
    assert copy.headers["expires"] is None
    assert copy.headers["effectonce_deferrals"] == 1


def _without(facts: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in names}
