"""Messages: what is published is recorded, and goes nowhere.

The receiver of a message is another task. A message that is sent twice is harmless if that task is guarded; a message
that is lost, or sent by work that did not take place, never is.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from effectonce.testing.attempts import Touch, current_attempt, touched
from effectonce.testing.faults.patching import shortened
from effectonce.testing.libraries import loaded


@contextmanager
def watched() -> Iterator[None]:
    """Watch every producer of kombu."""
    messaging = loaded("kombu.messaging")
    if messaging is None:
        yield
        return
    plain = messaging.Producer.publish

    def publish(producer: Any, body: Any, *args: Any, **options: Any) -> Any:
        if current_attempt() is None:
            return plain(producer, body, *args, **options)
        return touched(lambda _: _message(options), lambda: None)

    messaging.Producer.publish = publish
    try:
        yield
    finally:
        messaging.Producer.publish = plain


def _message(options: dict[str, Any]) -> Touch:
    headers = options.get("headers") or {}
    name = headers.get("task")
    if name is None:
        return Touch(shortened(f"publish to {options.get('routing_key') or options.get('exchange')}"), recorded=True)
    arguments = headers.get("argsrepr") or "", headers.get("kwargsrepr") or ""
    guarded = f"the task {name} is guarded" if _is_guarded(name) else None
    return Touch(shortened(f"publish {name}{arguments[0]} {arguments[1]}"), recorded=True, once=guarded)


def _is_guarded(name: str) -> bool:
    state = loaded("celery._state")
    apps = state._get_active_apps() if state is not None else ()  # noqa: SLF001 - listed in test_celery_names
    return any(getattr(app._tasks.get(name), "once", None) is not None for app in apps)  # noqa: SLF001 - the same
