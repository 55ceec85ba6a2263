"""Bodies that hand over by ``replace()``, and what a duplicate gets; deliveries go through Celery's own tracer."""

import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain, group
from celery.app.trace import build_tracer

from effectonce import EffectOnce, Leased, ResultNotKept
from effectonce.domain.claims import State

Deliver = Callable[..., tuple[str, Any]]


@pytest.fixture
def deliver(app: Celery) -> Deliver:
    """One delivery of a message: its state and its result, as Celery sees them."""

    def deliver(task: Any, *args: Any, task_id: str) -> tuple[str, Any]:
        app.finalize()
        info = {"exchange": "", "routing_key": "celery", "redelivered": False, "priority": 0}
        request = {"id": task_id, "task": task.name, "delivery_info": info, "retries": 0}
        result, ending, *_ = build_tracer(task.name, task, app=app)(task_id, list(args), {}, request)
        return ("SUCCESS", result) if ending is None else (ending.state, ending.retval)

    return deliver


@pytest.fixture
def first() -> str:
    """An id of this test: the backend in memory is one for all apps."""
    return uuid.uuid4().hex


@pytest.fixture
def handing(app: Celery, once: EffectOnce) -> Any:
    """A task that is replaced by another one, or by several."""

    @app.task(name="add")
    def add(x: int, y: int) -> int:
        return x + y

    @app.task(name="handing", bind=True, once=Leased("handing:{n}"))
    def handing(self: Any, n: int, how: str) -> Any:
        whole = {
            "one": add.si(n, 1),
            "chain": chain(add.si(n, 1), add.s(2)),
            "group": group(add.si(n, 1), add.si(n, 2)),
            "own key": chain(handing.si(n, how), add.s(1)),
        }
        return self.replace(whole[how])

    return handing


@pytest.mark.parametrize("how", ["one", "chain", "group"])
def test_a_duplicate_of_a_replaced_task_waits_for_the_result_and_gets_it(
    app: Celery, handing: Any, deliver: Deliver, first: str, how: str
) -> None:
    assert deliver(handing, 1, how, task_id=first)[0] == "IGNORED"
    state, reason = deliver(handing, 1, how, task_id=f"{first}-2")
    assert (state, "a copy of this message comes" in str(reason)) == ("IGNORED", True)
    app.backend.mark_as_done(first, 42)
    assert deliver(handing, 1, how, task_id=f"{first}-2") == ("SUCCESS", 42)


def test_a_replacement_that_begins_with_the_same_key_is_not_its_duplicate(
    once: EffectOnce, handing: Any, deliver: Deliver, first: str
) -> None:
    deliver(handing, 1, "own key", task_id=first)
    assert [entry.state for entry in once.ledger.entries(state=None, limit=9)] == [State.RELEASED]


@pytest.mark.parametrize("conf", [{"result_expires": timedelta(microseconds=1)}, {"result_backend": "disabled://"}])
def test_a_duplicate_does_not_wait_for_a_result_that_cannot_come(
    app: Celery, handing: Any, deliver: Deliver, first: str, conf: dict[str, Any]
) -> None:
    if "result_backend" in conf:
        app.backend_cls = conf["result_backend"]
    app.conf.update(conf)
    deliver(handing, 1, "one", task_id=first)
    state, error = deliver(handing, 1, "one", task_id=f"{first}-2")
    assert (state, type(error)) == ("FAILURE", ResultNotKept)


def test_a_duplicate_waits_for_a_result_backend_that_is_away(
    app: Celery, handing: Any, deliver: Deliver, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(handing, 1, "one", task_id=first)
    with monkeypatch.context() as away:
        away.setattr(app.backend, "get", _away)
        state, reason = deliver(handing, 1, "one", task_id=f"{first}-2")
    assert (state, "result backend away" in str(reason)) == ("IGNORED", True)


def _away(*_: Any) -> Any:
    raise ConnectionError
