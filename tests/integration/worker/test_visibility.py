"""Redis gives a message to somebody else after its visibility timeout, here 3 s, though the first holder lives."""

import pytest

from tests.integration.worker.harness import Shop
from tests.integration.worker.waiting import wait_drained

BOTH = [("redis+postgresql", ("charge", "mail")), ("redis+redis", ("mail",))]
DONE = {"charge": "charged 7", "mail": "mailed 7"}


def assert_one_body(shop: Shop, task: str, order: int) -> None:
    """One body and one effect, when no copy is under way any more."""
    wait_drained(shop)
    assert shop.bodies(f"{task}:{order}") == 1
    if task == "charge":
        assert shop.effects()[order] == 1
    else:
        assert len(shop.outside(f"{task}:{order}")) == 1


@pytest.mark.parametrize(("pair", "tasks"), BOTH)
def test_a_body_longer_than_the_visibility_timeout_runs_once(shop: Shop, pair: str, tasks: tuple[str, ...]) -> None:
    """A07, A09, A14: 8 s of body, 3 s of visibility; each copy finds the effect busy and waits."""
    shop.start()
    idle = shop.add()
    results = [shop.send(task, 7, kwargs={"pause": 8}) for task in tasks]
    assert [result.get(timeout=60) for result in results] == [DONE[task] for task in tasks]
    assert "effect.deferred" in shop.logs()
    for task in tasks:
        assert_one_body(shop, task, 7)
    idle.stop()


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_a_countdown_longer_than_the_visibility_timeout_takes_effect_once(shop: Shop, pair: str) -> None:
    """A01, A02: 12 s of countdown, 3 s of visibility, two workers that get copies all the time."""
    shop.start()
    other = shop.add()
    results = {task: shop.send(task, 1, countdown=12) for task in ("charge", "mail")}
    for task, result in results.items():
        assert result.get(timeout=60)
        assert_one_body(shop, task, 1)
        assert shop.logs().count(f"{task}[{result.id}] received") > 1
    other.stop()


@pytest.mark.parametrize("pair", ["redis+postgresql"])
@pytest.mark.parametrize("task", ["charge", "mail"])
def test_a_copy_of_a_running_message_does_not_change_its_state(shop: Shop, pair: str, task: str) -> None:
    """A11: the copy is neither a failure nor a success; the first holder's end is the message's end."""
    shop.shut(f"{task}-11")
    shop.start()
    result = shop.send(task, 11)
    shop.wait_at(f"{task}-11")
    shop.wait_log("effect.deferred")
    assert result.state == "PENDING"
    shop.open(f"{task}-11")
    assert result.get(timeout=30)
    assert_one_body(shop, task, 11)
    assert result.state == "SUCCESS"


@pytest.mark.parametrize("pair", ["redis+postgresql"])
@pytest.mark.parametrize("task", ["charge", "mail"])
def test_a_message_that_comes_again_after_its_result_changes_nothing(shop: Shop, pair: str, task: str) -> None:
    """A23, A24, A70, A84: a broker that forgot the acknowledgement gives the very message again."""
    shop.start()
    first = shop.send(task, 70)
    done = first.get(timeout=30)
    for _ in range(3):
        shop.send(task, 70, task_id=first.id)
        assert_one_body(shop, task, 70)
    assert (first.state, first.result) == ("SUCCESS", done)
    assert "raised unexpected" not in shop.logs()


@pytest.mark.parametrize("pair", ["redis+postgresql"])
@pytest.mark.parametrize("task", ["charge", "mail"])
def test_two_messages_with_one_id_run_one_body(shop: Shop, pair: str, task: str) -> None:
    """A50, A52, L17: the broker stored the message, its answer was lost, and the sender sent it again."""
    shop.shut(f"{task}-17")
    shop.start()
    first = shop.send(task, 17)
    shop.wait_at(f"{task}-17")
    shop.send(task, 17, task_id=first.id)
    shop.wait_log("effect.deferred")
    shop.open(f"{task}-17")
    assert first.get(timeout=30)
    assert_one_body(shop, task, 17)
