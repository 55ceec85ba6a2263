"""Connections that break and workers that are asked to end while a body runs."""

import os
import signal

import pytest

from tests.integration.worker.harness import Shop
from tests.integration.worker.waiting import wait_drained
from tests.services import Fleet, RabbitMQ


@pytest.mark.parametrize("pair", ["redis+postgresql"])
@pytest.mark.parametrize("task", ["charge", "mail"])
def test_a_body_that_ends_during_a_warm_shutdown_is_not_run_again(shop: Shop, pair: str, task: str) -> None:
    """A18: a deploy asks the worker to end; what it finishes on its way out is finished."""
    shop.shut(f"{task}-18")
    worker = shop.start()
    result = shop.send(task, 18)
    shop.wait_at(f"{task}-18")
    os.kill(worker.pid, signal.SIGTERM)
    shop.wait_log("Warm shutdown")
    shop.open(f"{task}-18")
    shop.wait(lambda: not worker.is_running, "the worker has ended")
    shop.start()
    assert result.get(timeout=30)
    wait_drained(shop)
    assert shop.bodies(f"{task}:18") == 1


@pytest.mark.parametrize("pair", ["amqp+postgresql"])
@pytest.mark.parametrize("task", ["charge", "mail"])
def test_a_message_that_comes_again_after_a_broken_connection_waits_for_its_first_body(
    shop: Shop, fleet: Fleet, pair: str, task: str
) -> None:
    """A15, A20: the first body can no longer acknowledge; the second delivery gets its result."""
    server = fleet.rabbitmq()
    if not isinstance(server, RabbitMQ):
        pytest.skip("connections of a server that is not ours are not closed")
    shop.shut(f"{task}-15")
    shop.start()
    result = shop.send(task, 15, retry=True)
    shop.wait_at(f"{task}-15")
    server.control("eval", '[rabbit_networking:close_connection(P, "a test") || P <- rabbit_networking:connections()].')
    shop.wait_log("effect.deferred")
    shop.open(f"{task}-15")
    assert result.get(timeout=60)
    shop.wait_log("effect.replayed")
    assert shop.bodies(f"{task}:15") == 1


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_a_frozen_worker_loses_its_key_when_the_time_limit_and_a_lease_are_over(shop: Shop, pair: str) -> None:
    """H10: worker and child are stopped, so nobody on that machine enforces the limit; PostgreSQL ends the session."""
    shop.shut("charge-10")
    frozen = shop.start()
    result = shop.send("charge", 10, time_limit=3)
    shop.wait_at("charge-10")
    frozen.pause()
    shop.open("charge-10")
    shop.add()
    assert result.get(timeout=60) == "charged 10"
    frozen.resume()
    wait_drained(shop)
    assert shop.effects() == {10: 1}
