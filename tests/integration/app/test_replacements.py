"""Bodies that hand over by ``replace()``, and what a duplicate gets; deliveries go through Celery's own tracer."""

import uuid
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from celery import Celery, chain, chord, group
from celery.app.trace import build_tracer

from effectonce import EffectOnce, Leased, ResultNotKept
from effectonce.domain.claims import State

Deliver = Callable[..., tuple[str, Any]]


@pytest.fixture
def deliver(app: Celery) -> Deliver:
    """One delivery of a message: its state and its result, as Celery sees them."""

    def deliver(task: Any, *args: Any, task_id: str, **headers: str) -> tuple[str, Any]:
        app.finalize()
        info = {"exchange": "", "routing_key": "celery", "redelivered": False, "priority": 0}
        request = {"id": task_id, "task": task.name, "delivery_info": info, "retries": 0, "headers": headers}
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
            "own key first": chain(handing.si(n, how), add.s(1)),
            "own key last": chain(add.si(n, 1), handing.si(n, how)),
            "own key between": chain(add.si(n, 1), handing.si(n, how), add.s(1)),
            "own key in a group": chain(add.si(n, 1), group(add.s(2), handing.si(n, how))),
            "own key after all": chord([add.si(n, 1), add.si(n, 2)], handing.si(n, how)),
            "own key as link": add.si(n, 1).on_error(handing.si(n, how)),
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


@pytest.mark.parametrize("where", ["first", "last", "between", "in a group", "after all", "as link"])
def test_a_replacement_that_has_the_same_key_anywhere_is_not_its_duplicate(
    once: EffectOnce, handing: Any, deliver: Deliver, first: str, where: str
) -> None:
    """A later step with this key would wait for the result of the whole, and so for itself."""
    deliver(handing, 1, f"own key {where}", task_id=first)
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


def sent(app: Celery) -> list[Any]:
    """The messages that wait in the app's queue."""
    found = []
    with app.connection() as connection, connection.SimpleQueue(app.main) as queue, suppress(queue.Empty):
        while True:
            found.append(queue.get_nowait())
    return found


TICKS = [f"2026-11-29T{hour}:00:00+00:00" for hour in ("10", "11")]


def test_what_a_tick_is_replaced_by_is_of_that_tick_too(
    app: Celery, once: EffectOnce, deliver: Deliver, first: str
) -> None:
    """Celery drops the headers; the second tick's replacement would be taken for the first one's duplicate."""
    seen: list[Any] = []

    @app.task(name="store", once=Leased("store:{region}"))
    def store(region: str) -> None:
        seen.append((region, once.effect.tick))

    @app.task(name="report", bind=True, once=Leased())
    def report(self: Any, region: str) -> Any:
        return self.replace(store.si(region))

    for number, tick in enumerate(TICKS):
        headers = {"effectonce_tick": tick, "effectonce_entry": "report#1"}
        assert deliver(report, "north", task_id=f"{first}-{number}", **headers)[0] == "IGNORED"
        (message,) = sent(app)
        carried = {name: value for name, value in message.headers.items() if name in headers}
        assert carried == headers
        assert deliver(store, "north", task_id=message.headers["id"], **carried)[0] == "SUCCESS"
    assert seen == [("north", tick) for tick in TICKS]


@pytest.mark.parametrize("how", ["chain", "group", "chord", "nested"])
def test_every_part_of_a_replacement_is_of_the_tick(
    app: Celery, once: EffectOnce, deliver: Deliver, first: str, how: str
) -> None:
    del once

    @app.task(name="add")
    def add(*numbers: int) -> int:
        return sum(numbers)

    wholes = {
        "chain": chain(add.si(1), add.si(2)),
        "group": group(add.si(1), add.si(2)),
        "chord": chord([add.si(1), add.si(2)], add.si(3)),
        "nested": group(chain(add.si(1), add.si(2)), add.si(3)),
    }

    @app.task(name="parts", bind=True, once=Leased())
    def parts(self: Any) -> Any:
        return self.replace(wholes[how])

    headers = {"effectonce_tick": TICKS[0], "effectonce_entry": "parts#1"}
    deliver(parts, task_id=first, **headers)
    found = sent(app)
    assert found
    for message in found:
        assert message.headers["effectonce_tick"] == TICKS[0]
        chained = message.payload[2]["chain"] or []
        assert all(each["options"]["headers"]["effectonce_tick"] == TICKS[0] for each in chained)
        body = message.payload[2]["chord"]
        assert body is None or body["options"]["headers"]["effectonce_tick"] == TICKS[0]
