"""Countdowns and etas beyond the visibility timeout of the broker: a warning, or an error instead of the message."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.app.trace import build_tracer
from celery.exceptions import Reject

from effectonce import EffectOnce, EtaTooFar, Leased
from effectonce.domain.claims import State

TIMEOUT = 60


def same(x: int) -> int:
    return x


@pytest.fixture
def redis_app(make_app: Callable[..., Celery], redis_url: str) -> Celery:
    return make_app(broker_url=redis_url, broker_transport_options={"visibility_timeout": TIMEOUT})


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.WARNING, "effectonce")
    return lambda: [line for line in caplog.messages if line.startswith("eta-too-far")]


def queued(app: Celery) -> int:
    with app.connection_for_read() as connection:
        return int(connection.default_channel._size(app.conf.task_default_queue))


AHEAD = [
    {"countdown": TIMEOUT + 5},
    {"eta": datetime.now(UTC) + timedelta(hours=1)},
    {"eta": (datetime.now(UTC) + timedelta(hours=1)).isoformat()},
]


@pytest.mark.parametrize("options", AHEAD)
@pytest.mark.parametrize("protocol", [1, 2])
def test_an_eta_beyond_the_timeout_is_warned_of_once_for_each_task(
    redis_app: Celery, warnings: Callable[[], list[str]], options: dict[str, Any], protocol: int
) -> None:
    redis_app.conf.task_protocol = protocol
    EffectOnce(redis_app, ledger="memory://far")
    work = redis_app.task(name="w", once=Leased("k:{x}"))(same)
    plain = redis_app.task(name="plain")(same)
    for task in (work, plain, plain, work):
        task.apply_async((1,), **options)
    assert [line.split("'")[1] for line in warnings()] == ["w", "plain"]
    assert "60 s" in warnings()[0]
    assert queued(redis_app) == 4


@pytest.mark.parametrize("options", AHEAD)
def test_an_eta_beyond_the_timeout_is_refused_where_that_is_wanted(redis_app: Celery, options: dict[str, Any]) -> None:
    EffectOnce(redis_app, ledger="memory://far", far_eta="raise")
    work = redis_app.task(name="w", once=Leased("k:{x}"))(same)
    with pytest.raises(EtaTooFar) as caught:
        work.apply_async((1,), **options)
    assert (caught.value.task, caught.value.timeout) == ("w", TIMEOUT)
    with pytest.raises(EtaTooFar):
        redis_app.send_task("by name", (1,), countdown=TIMEOUT + 5)
    assert queued(redis_app) == 0


@pytest.mark.parametrize("how", ["asked for", "automatic"])
def test_a_refused_retry_ends_its_message_and_lets_its_key_go(redis_app: Celery, how: str) -> None:
    """A05: Celery (5.7) makes a failure of the rejection, with our error as its reason."""
    once = EffectOnce(redis_app, ledger=f"memory://far {how}", far_eta="raise")

    def work(self: Any, x: int) -> None:
        if how == "asked for":
            raise self.retry(countdown=TIMEOUT + 5)
        raise ValueError(x)

    automatic = {"autoretry_for": (ValueError,), "retry_backoff": False, "default_retry_delay": TIMEOUT + 5}
    task = redis_app.task(name="w", bind=True, once=Leased("k:{x}"), **automatic)(work)
    request = {"id": "one", "task": "w", "retries": 0, "delivery_info": {}, "is_eager": False}
    rejected = build_tracer("w", task, app=redis_app)("one", (1,), {}, request).retval.exception.exc
    assert isinstance(rejected, Reject)
    assert (type(rejected.reason), rejected.requeue) == (EtaTooFar, False)
    assert [entry.state for entry in once.ledger.entries(state=None, limit=9)] == [State.RELEASED]
    assert queued(redis_app) == 0


def test_nothing_is_said_of_etas_within_the_timeout(redis_app: Celery, warnings: Callable[[], list[str]]) -> None:
    EffectOnce(redis_app, ledger="memory://far", far_eta="raise")
    work = redis_app.task(name="w", once=Leased("k:{x}"))(same)
    work.delay(1)
    work.apply_async((2,), countdown=TIMEOUT - 5)
    work.apply_async((3,), eta=datetime.now(UTC) - timedelta(days=3))
    assert (queued(redis_app), warnings()) == (3, [])


def test_nothing_is_said_where_the_broker_has_no_such_timeout(app: Celery, warnings: Callable[[], list[str]]) -> None:
    EffectOnce(app, ledger="memory://far", far_eta="raise")
    app.task(name="w", once=Leased("k:{x}"))(same).apply_async((1,), countdown=1_000_000)
    assert warnings() == []


def test_a_sender_with_settings_that_cannot_be_used_still_sends(
    redis_app: Celery, warnings: Callable[[], list[str]]
) -> None:
    """The workers report them; a process that only sends is not stopped by a ledger that it does not need."""
    EffectOnce(redis_app)
    redis_app.task(name="plain")(same).apply_async((1,), countdown=TIMEOUT + 5)
    assert (queued(redis_app), len(warnings())) == (1, 1)
