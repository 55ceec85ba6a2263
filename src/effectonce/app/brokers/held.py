"""What a channel of a virtual transport holds, read from another thread than the one that consumes.

kombu keeps delivered messages in ``qos._delivered``, and marks those that are done in ``qos._dirty`` until it next
takes one. The difference is what this worker holds: running, waiting for a slot, and waiting for an eta.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from effectonce.app.etas import eta_of
from effectonce.ports import Described

_TRIES = 20


def held_by(channel: Any) -> Mapping[str, Any]:
    """Messages that *channel* delivered and that are neither acknowledged nor rejected.

    The consuming thread changes the mapping meanwhile; a copy that failed for that reason is made again.
    """
    qos = channel.qos
    for _ in range(_TRIES):
        with contextlib.suppress(RuntimeError):
            return {tag: message for tag, message in list(qos._delivered.items()) if tag not in qos._dirty}  # noqa: SLF001 - listed in test_celery_names
    return {}


def describe(message: Any) -> Described:
    """Name, id and due time of a task's message, of either protocol."""
    facts = message.headers or {}
    if "task" not in facts:
        facts = _payload(message)
    return Described(task=str(facts.get("task") or ""), task_id=str(facts.get("id") or ""), due=eta_of(facts))


def _payload(message: Any) -> Mapping[str, Any]:
    with contextlib.suppress(Exception):  # what cannot be decoded, Celery rejects; it has no eta for us
        payload = message.payload
        if isinstance(payload, Mapping):
            return payload
    return {}
