"""Messages that commit with the work of a body: real workers that fail, are killed, or lose their broker."""

import pytest

from tests.integration.worker.harness import Shop


@pytest.fixture
def pair() -> str:
    """One broker and one ledger; the crash matrix has the others."""
    return "redis+postgresql"


def test_a_body_that_fails_after_it_sent_has_sent_nothing(shop: Shop) -> None:
    """A44."""
    shop.start()
    with pytest.raises(ValueError, match="1"):
        shop.send("sells", 1, "badly").get(timeout=30)
    shop.send("sells", 2).get(timeout=30)
    shop.wait_bodies("add:2", 1)
    shop.wait_bodies("mail:2", 1)
    assert (shop.bodies("add:1"), shop.bodies("mail:1")) == (0, 0)
    assert shop.effects() == {2: 1}


def test_a_worker_killed_between_the_commit_and_the_send_has_its_messages_sent_once(shop: Shop) -> None:
    """A51."""
    death = shop.folder / "death"
    worker = shop.add_alone(env={"EFFECTONCE_CRASH": "dispatch.before", "EFFECTONCE_CRASH_ONCE": str(death)})
    result = shop.send("sells", 1)
    shop.wait(death.exists, "the child died before it sent")
    assert result.get(timeout=60) == "sold 1"
    shop.wait_bodies("mail:1", 1)
    shop.wait_bodies("add:1", 1)
    worker.stop()
    assert (shop.bodies("sells:1"), shop.bodies("mail:1"), shop.bodies("add:1")) == (1, 1, 1)
    assert shop.effects() == {1: 1}
    assert shop.once.outbox_store().depth().ready == 0


def test_a_child_killed_before_it_struck_off_sends_again_and_guarded_tasks_do_not_mind(shop: Shop) -> None:
    """A50."""
    death = shop.folder / "death"
    worker = shop.add_alone(env={"EFFECTONCE_CRASH": "dispatch.after", "EFFECTONCE_CRASH_ONCE": str(death)})
    result = shop.send("sells", 1)
    shop.wait(death.exists, "the child died after it had sent")
    assert result.get(timeout=60) == "sold 1"
    shop.wait_bodies("add:1", 2)
    shop.wait(lambda: shop.once.outbox_store().depth().ready == 0, "the outbox is empty")
    worker.stop()
    assert shop.bodies("mail:1") == 1
