"""Messages for the outbox, without what these tests do not look at."""

from typing import Any

from effectonce.domain.outbox import Message


def message(task: str, **other: Any) -> Message:
    """A message for the default queue."""
    plain = {
        "task_id": "one",
        "exchange": "",
        "routing_key": "celery",
        "content_type": "application/json",
        "content_encoding": "utf-8",
        "body": b"",
        "headers": "{}",
        "properties": "{}",
        "declares": "[]",
    }
    return Message(task=task, **{**plain, **other})
