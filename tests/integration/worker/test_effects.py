"""Real workers, real brokers, real ledgers: bodies may be killed, effects happen once, nothing is lost."""

import pytest
from celery import chain, chord, group

from tests.integration.worker.conftest import SHOPS
from tests.integration.worker.harness import Shop

LEASED = [*SHOPS, "redis+redis", "amqp+redis"]
BOTH = [*[(pair, "charge") for pair in SHOPS], *[(pair, "mail") for pair in LEASED]]
KILLED = [*BOTH, ("redis+mariadb", "charge"), ("amqp+mariadb", "mail"), ("redis+pgbouncer", "charge")]


def test_a_task_sent_twice_takes_effect_once_and_both_get_the_result(shop: Shop) -> None:
    """A49."""
    shop.start()
    first, second = shop.send("charge", 1), shop.send("charge", 1)
    assert [first.get(timeout=30), second.get(timeout=30)] == ["charged 1", "charged 1"]
    assert shop.effects() == {1: 1}
    assert shop.bodies("charge:1") == 1
    told = [result.backend.get_task_meta(result.id).get("replayed", False) for result in (first, second)]
    assert sorted(told) == [False, True]
    shop.wait_log("effect.replayed")


@pytest.mark.parametrize("pair", LEASED)
def test_a_leased_task_sent_twice_acts_outside_once(shop: Shop) -> None:
    """A53."""
    shop.start()
    results = [shop.send("mail", 1) for _ in range(3)]
    assert {result.get(timeout=30) for result in results} == {"mailed 1"}
    assert shop.bodies("mail:1") == 1
    assert len(shop.outside("mail:1")) == 1


@pytest.mark.parametrize(("pair", "task"), BOTH)
def test_two_deliveries_at_once_run_one_body(shop: Shop, task: str) -> None:
    """Two workers get one message each while the first body is held open."""
    shop.shut(f"{task}-1")
    shop.start()
    first = shop.send(task, 1)
    shop.wait_at(f"{task}-1")
    second = shop.send(task, 1)
    shop.wait_log("effect.deferred")
    shop.open(f"{task}-1")
    assert first.get(timeout=30) == second.get(timeout=30)
    assert shop.bodies(f"{task}:1") == 1


@pytest.mark.parametrize(("pair", "task"), BOTH)
def test_a_killed_child_loses_nothing_and_doubles_nothing(shop: Shop, task: str) -> None:
    """A25, A56."""
    shop.shut(f"{task}-1")
    worker = shop.start()
    result = shop.send(task, 1)
    shop.wait_at(f"{task}-1")
    worker.kill_child(shop.body_pid(f"{task}:1"))
    shop.open(f"{task}-1")
    assert result.get(timeout=60)
    shop.assert_once(task, 1)


@pytest.mark.parametrize(("pair", "task"), KILLED)
def test_a_killed_worker_loses_nothing_and_doubles_nothing(shop: Shop, task: str) -> None:
    """A19, A28."""
    shop.shut(f"{task}-1")
    worker = shop.start()
    result = shop.send(task, 1)
    shop.wait_at(f"{task}-1")
    worker.kill()
    shop.open(f"{task}-1")
    shop.start()
    assert result.get(timeout=60)
    shop.assert_once(task, 1)


def test_a_retry_is_not_a_duplicate_of_itself(shop: Shop) -> None:
    """A04, A59."""
    shop.start()
    assert shop.send("flaky", 1, 2).get(timeout=60) == "at try 2"
    assert shop.effects() == {1: 1}
    assert shop.bodies("flaky:1") == 3


@pytest.mark.parametrize("pair", LEASED)
def test_an_automatic_retry_of_a_leased_task_goes_on(shop: Shop) -> None:
    """A05, A59."""
    shop.start()
    assert shop.send("flaky_mail", 1, 2).get(timeout=60) == "at try 2"
    assert shop.bodies("flaky-mail:1") == 3
    assert shop.outside("flaky-mail:1") == ["flaky-mail:1"]


def test_a_failure_releases_the_key_and_a_later_call_runs(shop: Shop) -> None:
    shop.start()
    with pytest.raises(ValueError, match="1"):
        shop.send("fails", 1, "once").get(timeout=30)
    assert shop.effects() == {}
    shop.send("fails", 1, "once").get(timeout=30)
    assert shop.effects() == {1: 1}


def test_a_remembered_failure_is_replayed(shop: Shop) -> None:
    shop.start()
    for _ in range(2):
        with pytest.raises(KeyError):
            shop.send("fails", 1, "remembered").get(timeout=30)
    assert shop.bodies("fails:1") == 1
    assert shop.effects() == {}


def test_other_arguments_under_one_key_are_an_error(shop: Shop) -> None:
    from effectonce import EffectKeyReused  # noqa: PLC0415 - the class that comes out of the backend

    shop.start()
    shop.send("charge", 1, 100).get(timeout=30)
    with pytest.raises(EffectKeyReused, match="amount") as caught:
        shop.send("charge", 1, 150).get(timeout=30)
    assert caught.value.key.endswith("charge:1")
    assert shop.effects() == {1: 1}


def test_a_chain_goes_on_through_a_duplicate(shop: Shop) -> None:
    shop.start()
    shop.send("charge", 1).get(timeout=30)
    tail = chain(shop.task("charge").si(1), shop.task("add").si(20, 3)).apply_async()
    assert tail.get(timeout=30) == 23
    assert shop.effects() == {1: 1}


def test_a_chord_with_equal_members_calls_its_body(shop: Shop) -> None:
    """A80, A83."""
    shop.start()
    whole = chord([shop.task("charge").si(1), shop.task("charge").si(1), shop.task("charge").si(2)])
    assert whole(shop.task("total").s()).get(timeout=60) == 3
    assert shop.effects() == {1: 1, 2: 1}
    assert shop.bodies("total") == 1


@pytest.mark.parametrize("pair", LEASED)
def test_a_group_of_duplicates_gives_each_its_result(shop: Shop) -> None:
    shop.start()
    assert group([shop.task("mail").s(7)] * 3).apply_async().get(timeout=60) == ["mailed 7"] * 3
    assert shop.bodies("mail:7") == 1


@pytest.mark.parametrize("pair", LEASED)
def test_links_of_a_duplicate_run(shop: Shop) -> None:
    shop.start()
    shop.send("shared", 5).get(timeout=30)
    shop.task("shared").apply_async((5,), link=shop.task("add").s(1)).get(timeout=30)
    shop.wait_bodies("add:5", 1)


def test_a_replacement_runs_once_and_its_duplicate_gets_its_result(shop: Shop) -> None:
    shop.start()
    first = shop.send("replaces", 4)
    assert first.get(timeout=30) == 5
    assert shop.send("replaces", 4).get(timeout=60) == 5
    assert shop.bodies("replaces:4") == 1
    assert shop.effects() == {4: 1}


def test_a_task_that_returns_nothing_is_done_too(shop: Shop) -> None:
    shop.start()
    for _ in range(3):
        assert shop.send("quiet", 3).get(timeout=30) is None
    assert shop.effects() == {3: 1}


def test_send_by_name_shares_the_key(shop: Shop) -> None:
    shop.start()
    shop.send("charge", 9).get(timeout=30)
    by_name = shop.app.send_task("tests.integration.worker.shop.charge", kwargs={"order_id": 9, "amount": 100})
    assert by_name.get(timeout=30) == "charged 9"
    assert shop.effects() == {9: 1}
