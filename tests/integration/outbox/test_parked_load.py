"""Many parked messages hold up none that is due."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from effectonce.app.relays import LOOK_EVERY
from effectonce.domain.outbox import Stage
from effectonce.lab.process_tree import wait_until
from effectonce.runtime.loop import Loop
from tests.integration.outbox.conftest import Office

COPIED = (
    "since, tries, stage, effect, task, exchange, routing_key, content_type, content_encoding, headers, properties, "
    "declares, body"
)


@pytest.mark.parametrize(
    "load",
    [(2_000, 20, None), pytest.param((100_000, 200, 1.0), marks=pytest.mark.soak)],
    ids=["some", "many"],
)
def test_messages_go_out_at_their_time_whatever_else_is_parked(
    offices: Callable[..., Office], postgresql_url: str, redis_url: str, load: tuple[int, int, float | None]
) -> None:
    """Parked ones, ones that are due soon, and how late those may be where nothing else runs on the machine."""
    parked, due, most_late = load
    office = offices(redis_url, postgresql_url, far_eta="park")
    office.app.conf.broker_transport_options = {"visibility_timeout": 3600}
    receipt = office.app.task(_echo, name="receipt")
    receipt.apply_async((1,), countdown=10_000)
    insert = f"insert into effectonce_outbox (due, task_id, {COPIED}) select"
    model = f"{COPIED} from effectonce_outbox, generate_series(1, %s) as nth where task_id not like 'soon%%'"
    with office.engine.begin() as connection:
        connection.exec_driver_sql(f"{insert} due + nth * 1000, 'far' || nth, {model}", (parked - 1,))
        connection.exec_driver_sql("analyze effectonce_outbox")
    with office.engine.begin() as connection:
        first = "(extract(epoch from clock_timestamp()) * 1000000)::bigint + 500000"
        one = f"{COPIED} from effectonce_outbox, generate_series(1, %s) as nth where task_id = 'far1'"
        connection.exec_driver_sql(f"{insert} {first} + nth * 10000, 'soon' || nth, {one}", (due,))
    late = _relayed(office, due)
    assert len(late) == due
    assert min(late) > -0.001, "none before its time"
    assert len(office.arrived()) == due
    assert office.once.outbox_store().depth().parked == parked
    if most_late is not None:
        assert max(late) < most_late


def _echo(number: int) -> int:
    return number


def _relayed(office: Office, number: int) -> list[float]:
    """Relay as a worker does, until so many are out; how late each of them was, in seconds."""
    late: list[float] = []
    relay = office.once.relay()
    broker: Any = vars(relay)["_broker"]
    plain = broker.send

    def send(messages: Any) -> Any:
        answers = plain(messages)
        late.extend(time.time() - message.due for message in messages)
        return answers

    vars(broker)["send"] = send
    loop = Loop("relay", lambda: relay.relay() > 0, interval=LOOK_EVERY)
    loop.start()
    try:
        assert wait_until(lambda: len(late) >= number, seconds=60)
    finally:
        loop.stop()
    assert office.waiting(Stage.READY) == []
    return late
