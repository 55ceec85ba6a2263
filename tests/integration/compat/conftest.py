"""An app whose messages stay in this process until they are carried out."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery
from celery.app.trace import build_tracer

from effectonce import EffectOnce


@pytest.fixture
def app() -> Iterator[Celery]:
    name = uuid.uuid4().hex
    app = Celery(name, broker="memory://", backend="cache+memory://", set_as_current=False)
    app.conf.task_default_queue = name
    once = EffectOnce(app, ledger=f"memory://{name}")
    yield app
    once.ledger.close()
    app.close()


@pytest.fixture
def carry_out(app: Celery) -> Callable[..., str]:
    """Carry out a message as a worker does; answers the state it ends in."""

    def carry_out(task: Any, *args: Any, task_id: str, **kwargs: Any) -> str:
        info = {"exchange": "", "routing_key": app.main, "redelivered": False, "priority": 0}
        request = {"id": task_id, "task": task.name, "delivery_info": info, "retries": 0, "is_eager": False}
        traced = build_tracer(task.name, app.tasks[task.name], app=app)(task_id, list(args), kwargs, request)
        return "SUCCESS" if traced.info is None else str(traced.info.state)

    return carry_out
