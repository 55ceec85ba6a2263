"""`Exclusive` with real workers: no two bodies of one key at once, whoever dies or sleeps; the next one may start."""

import pytest
from celery import chain

from tests.integration.policies.crossings import asleep, most_at_once
from tests.integration.worker.harness import Shop
from tests.integration.worker.waiting import wait_drained


def test_the_next_starts_when_the_lease_of_a_killed_holder_has_run_out(shop: Shop) -> None:
    """Its own message comes again too, and is not run beside the next one."""
    shop.shut("queued-a-1")
    worker = shop.start()
    first = shop.send("queued", "a", "1")
    shop.wait_at("queued-a-1")
    dead = shop.body_pid("queued-a:1")
    worker.kill_child(dead)
    second = shop.send("queued", "a", "2")
    shop.open("queued-a-1")
    assert second.get(timeout=60) == "did 2"
    assert first.get(timeout=60) == "did 1"
    assert most_at_once(shop, "queued-a", dead=frozenset({dead})) == 1


@pytest.mark.parametrize("pair", ["redis+sqlite"])
def test_a_killed_worker_does_not_keep_the_key(shop: Shop) -> None:
    """Whole: child, main and renewals; on Redis its message comes back after the visibility timeout."""
    shop.shut("sync-1")
    worker = shop.start()
    first = shop.send("sync", "1")
    shop.wait_at("sync-1")
    worker.kill()
    shop.open("sync-1")
    shop.start()
    assert first.get(timeout=60) == "synced 1"
    assert shop.send("sync", "2").get(timeout=30) == "synced 2"


@pytest.mark.parametrize("pair", ["redis+postgresql", "redis+redis"])
def test_a_holder_that_slept_past_its_lease_does_not_act(shop: Shop) -> None:
    """The next one runs; the sleeper wakes, asks, and is refused; its own message is put off and not lost.

    On Redis that message comes again while it sleeps, and may have its turn before the sleeper wakes.
    """
    shop.shut("checked-1")
    shop.start()
    other = shop.add()
    first = shop.send("checked", "1")
    shop.wait_at("checked-1")
    with asleep(shop.body_pid("checked:1")):
        shop.open("checked-1")
        assert shop.send("checked", "2").get(timeout=60) == "checked 2"
    assert first.get(timeout=60) == "checked 1"
    assert len(shop.outside("checked:1")) == 1
    other.stop()


@pytest.mark.parametrize("pair", ["redis+redis", "amqp+postgresql"])
def test_a_second_message_is_skipped_and_the_third_runs(shop: Shop) -> None:
    """Skipped is REVOKED with the reason and the key, and no state that waits for ever (rule 15)."""
    shop.shut("sync-1")
    shop.start()
    first = shop.send("sync", "1")
    shop.wait_at("sync-1")
    second = shop.send("sync", "2")
    shop.wait(lambda: second.state == "REVOKED", "the second is skipped")
    assert "sync is being carried out by another message" in str(second.result)
    shop.open("sync-1")
    assert first.get(timeout=30) == "synced 1"
    assert shop.send("sync", "3").get(timeout=30) == "synced 3"
    assert shop.bodies("sync:2") == 0


@pytest.mark.parametrize("pair", ["redis+redis", "amqp+postgresql"])
def test_many_messages_take_turns(shop: Shop) -> None:
    """Two workers of two processes; each message is carried out, one at a time; another key does not wait."""
    shop.start()
    other = shop.add()
    names = [str(number) for number in range(3)]
    results = [shop.send("queued", "a", name, kwargs={"pause": 0.1}) for name in names]
    elsewhere = shop.send("queued", "b", "x")
    assert [result.get(timeout=60) for result in results] == [f"did {name}" for name in names]
    assert elsewhere.get(timeout=30) == "did x"
    assert most_at_once(shop, "queued-a") == 1
    other.stop()


@pytest.mark.parametrize("pair", ["redis+redis"])
def test_a_copy_of_the_running_message_is_put_off_and_not_skipped(shop: Shop, pair: str) -> None:
    """Hole H1: the broker gives the message out again while its holder lives; then that one dies."""
    shop.shut("sync-1")
    worker = shop.start()
    other = shop.add()
    first = shop.send("sync", "1")
    shop.wait_at("sync-1")
    shop.wait_log("effect.deferred")
    holder = next(each for each in (worker, other) if shop.body_pid("sync:1") in each.children())
    holder.kill()
    shop.open("sync-1")
    assert first.get(timeout=60) == "synced 1"
    assert first.state == "SUCCESS"
    other.stop()


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_a_body_longer_than_the_visibility_timeout_runs_once(shop: Shop, pair: str) -> None:
    """A copy that waited until the end is a duplicate of what was carried out last, and does not run it again."""
    shop.start()
    other = shop.add()
    first = shop.send("sync", "1", kwargs={"pause": 5})
    assert first.get(timeout=60) == "synced 1"
    assert "effect.deferred" in shop.logs()
    wait_drained(shop)
    assert shop.bodies("sync:1") == 1
    other.stop()


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_in_a_chain_a_busy_one_waits(shop: Shop, pair: str) -> None:
    """What waits for its result would be lost by a skip (rule 4)."""
    shop.shut("sync-1")
    shop.start()
    first = shop.send("sync", "1")
    shop.wait_at("sync-1")
    tail = chain(shop.task("sync").si("2"), shop.task("sync").si("3")).apply_async()
    shop.wait_log("effect.deferred")
    shop.open("sync-1")
    assert first.get(timeout=30) == "synced 1"
    assert tail.get(timeout=60) == "synced 3"
    assert shop.bodies("sync:2") == 1


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_a_retry_takes_the_key_again(shop: Shop, pair: str) -> None:
    shop.start()
    assert shop.send("retried", "1", 2).get(timeout=60) == "at try 2"
    assert shop.bodies("retried:1") == 3


@pytest.mark.parametrize("pair", ["redis+redis"])
def test_a_failure_frees_the_key(shop: Shop, pair: str) -> None:
    shop.start()
    for name in ("1", "2"):
        with pytest.raises(ValueError, match=name):
            shop.send("failing", name).get(timeout=30)
