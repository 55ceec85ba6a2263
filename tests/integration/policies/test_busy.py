"""What a message does under `Exclusive` that finds another one at work: wait, or go on after it."""

import pytest
from celery.exceptions import TaskRevokedError

from effectonce.crashpoints import POINTS
from tests.integration.policies.crossings import most_at_once
from tests.integration.worker.harness import Shop

FOLLOWING = sorted(point for point in POINTS if point.startswith("follow."))


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_a_message_waits_for_its_turn_and_is_put_off_after_a_lease(shop: Shop, pair: str) -> None:
    """The holder renews its lease, so it is not gone when that time is over."""
    shop.shut("waiting-1")
    shop.start()
    first = shop.send("waiting", "1")
    shop.wait_at("waiting-1")
    second = shop.send("waiting", "2")
    shop.wait_log("why=waited")
    shop.open("waiting-1")
    assert [first.get(timeout=60), second.get(timeout=60)] == ["did 1", "did 2"]
    assert most_at_once(shop, "waiting") == 1


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis", "amqp+sqlite"])
def test_of_those_that_come_during_a_run_one_follows(shop: Shop, pair: str) -> None:
    shop.shut("rebuild-1")
    shop.start()
    first = shop.send("rebuild", "1")
    shop.wait_at("rebuild-1")
    second = shop.send("rebuild", "2")
    shop.wait_log("why=follows")
    others = [shop.send("rebuild", name) for name in ("3", "4")]
    for other in others:
        with pytest.raises(TaskRevokedError, match="rebuild is being carried out, and another message follows"):
            other.get(timeout=60)
    shop.open("rebuild-1")
    assert [first.get(timeout=60), second.get(timeout=60)] == ["rebuilt for 1", "rebuilt for 2"]
    assert [shop.bodies(f"rebuild:{name}") for name in ("1", "2", "3", "4")] == [1, 1, 0, 0]
    assert most_at_once(shop, "rebuild") == 1


@pytest.mark.parametrize("pair", ["redis+postgresql"])
@pytest.mark.parametrize("point", FOLLOWING)
def test_a_follower_that_dies_beside_its_registration_is_not_lost(shop: Shop, pair: str, point: str) -> None:
    shop.shut("rebuild-1")
    shop.start()
    first = shop.send("rebuild", "1")
    shop.wait_at("rebuild-1")
    death = shop.folder / f"death-{point}"
    mortal = shop.add(queues=["mortal"], env={"EFFECTONCE_CRASH": point, "EFFECTONCE_CRASH_ONCE": str(death)})
    second = shop.send("rebuild", "2", queue="mortal")
    shop.wait(death.exists, "somebody died there")
    shop.wait_log("why=follows")
    shop.open("rebuild-1")
    assert [first.get(timeout=60), second.get(timeout=60)] == ["rebuilt for 1", "rebuilt for 2"]
    mortal.stop()
