"""Messages: what is published is recorded, and goes nowhere.

The watch is at the last step of a producer: what our outbox only stores does not come there until it is sent.

The receiver of a message is another task. A message that is sent twice is harmless if that task is guarded; a message
that is lost, or sent by work that did not take place, never is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from effectonce.testing.attempts import Touch, current_attempt, touched
from effectonce.testing.faults.patching import shortened
from effectonce.testing.libraries import loaded

_HEADERS: Final = 4
_ROUTING_KEY: Final = 6


@contextmanager
def watched() -> Iterator[None]:
    """Watch every producer of kombu."""
    messaging = loaded("kombu.messaging")
    if messaging is None:
        yield
        return
    plain = messaging.Producer._publish  # noqa: SLF001 - listed in test_celery_names

    def _publish(producer: Any, *message: Any, **options: Any) -> Any:
        if current_attempt() is None:
            return plain(producer, *message, **options)
        return touched(lambda _: _message(*message), lambda: None)

    messaging.Producer._publish = _publish  # noqa: SLF001 - listed in test_celery_names
    try:
        with _one_by_one():
            yield
    finally:
        messaging.Producer._publish = plain  # noqa: SLF001 - listed in test_celery_names


@contextmanager
def _one_by_one() -> Iterator[None]:
    """Our outbox sends many messages over a channel of its own; here each goes through a producer."""
    broker = loaded("effectonce.app.kombu_broker")
    if broker is None:
        yield
        return
    plain = broker.KombuBroker._send_together  # noqa: SLF001 - our own; tests/testing holds the name
    broker.KombuBroker._send_together = lambda *_: False  # noqa: SLF001 - the same
    try:
        yield
    finally:
        broker.KombuBroker._send_together = plain  # noqa: SLF001 - the same


def _message(*message: Any) -> Touch:
    """What kombu's `Producer._publish` gets: body, priority, type, encoding, headers, properties, routing key."""
    headers, key = message[_HEADERS] or {}, message[_ROUTING_KEY]
    name = headers.get("task")
    if name is None:
        return Touch(shortened(f"publish to {key}"), recorded=True)
    arguments = headers.get("argsrepr") or "", headers.get("kwargsrepr") or ""
    guarded = f"the task {name} is guarded" if _is_guarded(name) else None
    return Touch(shortened(f"publish {name}{arguments[0]} {arguments[1]}"), recorded=True, once=guarded)


def _is_guarded(name: str) -> bool:
    state = loaded("celery._state")
    apps = state._get_active_apps() if state is not None else ()  # noqa: SLF001 - listed in test_celery_names
    return any(getattr(app._tasks.get(name), "once", None) is not None for app in apps)  # noqa: SLF001 - the same
