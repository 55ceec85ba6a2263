"""Messages that kill whoever touches them are set aside; limits and skips leave nothing stuck."""

from functools import partial

import pytest
from celery.result import AsyncResult

from effectonce.domain.claims import State
from effectonce.lab.processes import Worker
from tests.integration.worker.harness import Shop

PAIRS = ["redis+redis", "amqp+postgresql"]


def assert_held(shop: Shop, results: list[AsyncResult]) -> None:
    """One poisoned entry with every message kept, each result saying so, and the worker at work for others."""
    shop.wait(lambda: all(result.state == "HELD" for result in results), "every result is HELD")
    poisoned = shop.once.ledger.entries(state=State.POISONED, limit=10)
    assert len(poisoned) == 1
    assert len(shop.once.ledger.held(poisoned[0].digest)) == len(results)
    assert shop.send("mail", 1).get(timeout=30) == "mailed 1"


@pytest.mark.parametrize("pair", ["redis+redis"])
def test_a_message_that_kills_its_children_is_held_after_so_many_deaths(shop: Shop, pair: str) -> None:
    """A25, A31, A34: max_takeovers=3 is three starts; then a state that is seen, and the message is kept."""
    shop.start()
    result = shop.send("deadly_mail", 31)
    assert_held(shop, [result])
    assert shop.bodies("deadly-mail:31") == 3


@pytest.mark.parametrize("pair", ["amqp+postgresql"])
def test_a_first_transactional_delivery_that_died_is_not_counted(shop: Shop, pair: str) -> None:
    """A25, A31: it left no entry that could say so; so there is one start more."""
    shop.start()
    result = shop.send("deadly", 31)
    assert_held(shop, [result])
    assert shop.bodies("deadly:31") == 4
    assert shop.effects() == {}


@pytest.mark.parametrize("pair", PAIRS)
def test_deaths_are_counted_by_key_and_not_by_task_id(shop: Shop, pair: str) -> None:
    """A32: a caller that sends the same again under new ids does not get around the limit."""
    shop.start()
    results = [shop.send("deadly_mail", 32) for _ in range(4)]
    assert_held(shop, results)
    assert shop.bodies("deadly-mail:32") == 3


@pytest.mark.parametrize("pair", ["amqp+postgresql"])
def test_a_message_that_kills_whole_workers_is_held_after_so_many_deaths(shop: Shop, pair: str) -> None:
    """A31, second part: each death takes the worker with it, as a container's limit does."""
    result = shop.send("deadly_mail", 33, True)  # noqa: FBT003 - a task's argument
    for death in range(1, 4):
        worker = shop.start()
        shop.wait_bodies("deadly-mail:33", death)
        shop.wait(partial(_is_dead, worker), "the worker is dead")
    shop.start()
    assert_held(shop, [result])
    assert shop.bodies("deadly-mail:33") == 3


@pytest.mark.parametrize("pair", PAIRS)
def test_a_hard_time_limit_leaves_nothing_claimed_for_ever(shop: Shop, pair: str) -> None:
    """A26, A58, A68: Celery acknowledges the message; its key is let go or its lease ends, and a later call runs."""
    shop.shut("mail-26")
    shop.start()
    result = shop.send("mail", 26, time_limit=1)
    shop.wait_at("mail-26")
    shop.wait(lambda: result.state == "FAILURE", "the time limit has struck")
    shop.open("mail-26")
    assert shop.send("mail", 26).get(timeout=30) == "mailed 26"


@pytest.mark.parametrize("pair", PAIRS)
def test_a_skipped_message_does_not_pass_for_a_done_one(shop: Shop, pair: str) -> None:
    """A61, A68: it ends as REVOKED, and the next call after the holder's end gets the result."""
    shop.shut("skips-61")
    shop.start()
    first = shop.send("skips", 61)
    shop.wait_at("skips-61")
    second = shop.send("skips", 61)
    shop.wait(lambda: second.state == "REVOKED", "the second is skipped")
    shop.open("skips-61")
    assert first.get(timeout=30) == "done 61"
    assert shop.send("skips", 61).get(timeout=30) == "done 61"
    assert shop.bodies("skips:61") == 1


@pytest.mark.parametrize("pair", PAIRS)
def test_a_receiver_that_answers_too_late_is_shown_the_same_key_again(shop: Shop, pair: str) -> None:
    """A66, A74: the key names the order and not the try, so a receiver that honours it charges once."""
    shop.start()
    assert shop.send("pays", 66, 2).get(timeout=60) == "paid 66"
    calls = shop.outside("pays:66")
    assert (len(calls), len(set(calls))) == (3, 1)


def _is_dead(worker: Worker) -> bool:
    return not worker.is_running
