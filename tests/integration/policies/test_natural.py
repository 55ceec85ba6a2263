"""`Natural` with real workers: nothing is recorded, nothing is lost."""

import pytest

from tests.integration.worker.harness import Shop


@pytest.mark.parametrize(("pair", "task"), [("redis+redis", "natural"), ("amqp+postgresql", "nameless")])
def test_the_message_of_a_killed_worker_comes_again(shop: Shop, pair: str, task: str) -> None:
    """Late acknowledgement and requeue on worker loss are set."""
    shop.shut(f"{task}-1")
    worker = shop.start()
    result = shop.send(task, "1")
    shop.wait_at(f"{task}-1")
    worker.kill_child(shop.body_pid(f"{task}:1"))
    shop.open(f"{task}-1")
    assert result.get(timeout=60) == "set 1"
    assert shop.bodies(f"{task}:1") == 2


@pytest.mark.parametrize("pair", ["redis+redis", "redis+postgresql"])
def test_each_message_runs_and_nothing_is_recorded(shop: Shop, pair: str) -> None:
    shop.start()
    assert [shop.send("natural", "7").get(timeout=30) for _ in range(2)] == ["set 7"] * 2
    assert shop.bodies("natural:7") == 2
    assert len(set(shop.outside("natural:7"))) == 1
    assert shop.once.ledger.entries(state=None, limit=10) == []
