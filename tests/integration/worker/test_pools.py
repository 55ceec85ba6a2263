"""Threads, solo, gevent and eventlet, besides prefork: the same promises."""

import pytest

from tests.integration.worker.harness import Shop

POOLS = [
    ("redis+postgresql", "threads"),
    ("redis+postgresql", "solo"),
    ("amqp+sqlite", "threads"),
    ("amqp+sqlite", "solo"),
]
GREEN = [("redis+postgresql", "gevent"), ("redis+postgresql", "eventlet")]
SWEEPING = {"SHOP_RENEW": "1"}
"""An idle worker of these pools gives nothing back that dead ones held, unless our sweeper runs."""


@pytest.mark.parametrize(("pair", "pool"), POOLS + GREEN)
def test_a_repeat_gets_the_first_result_in_every_pool(shop: Shop, pair: str, pool: str) -> None:
    shop.start()
    for task, done in (("charge", "charged 1"), ("mail", "mailed 1")):
        results = [shop.send(task, 1) for _ in range(3)]
        assert {result.get(timeout=60) for result in results} == {done}
        assert shop.bodies(f"{task}:1") == 1
    assert shop.effects() == {1: 1}


@pytest.mark.parametrize(("pair", "pool"), POOLS)
@pytest.mark.parametrize("task", ["charge", "mail"])
def test_a_worker_killed_in_a_body_loses_nothing_in_every_pool(shop: Shop, pair: str, pool: str, task: str) -> None:
    shop.shut(f"{task}-1")
    worker = shop.start()
    result = shop.send(task, 1)
    shop.wait_at(f"{task}-1")
    worker.kill()
    shop.open(f"{task}-1")
    shop.start()
    assert result.get(timeout=60)
    shop.assert_once(task, 1)


@pytest.mark.parametrize(("pair", "pool"), GREEN)
def test_a_worker_killed_in_a_body_loses_nothing_in_green_pools(shop: Shop, pair: str, pool: str) -> None:
    shop.end_workers()
    shop.shut("charge-1")
    worker = shop.add(env=SWEEPING)
    result = shop.send("charge", 1)
    shop.wait_at("charge-1")
    worker.kill()
    shop.open("charge-1")
    shop.add(env=SWEEPING)
    assert result.get(timeout=60)
    shop.assert_once("charge", 1)


@pytest.mark.parametrize(("pair", "pool"), [*POOLS, *(pytest.param(*each, marks=pytest.mark.soak) for each in GREEN)])
def test_retries_go_on_in_every_pool(shop: Shop, pair: str, pool: str) -> None:
    shop.start()
    assert shop.send("flaky", 1, 2).get(timeout=60) == "at try 2"
    assert shop.send("flaky_mail", 1, 2).get(timeout=60) == "at try 2"
    assert shop.effects() == {1: 1}
    assert shop.outside("flaky-mail:1") == ["flaky-mail:1"]
