"""kill -9 around a step: the outside acts once, or a person is asked."""

from collections.abc import Iterator

import pytest
from celery.result import AsyncResult

from effectonce.domain.claims import Entry, State
from effectonce.domain.steps import Step
from tests.integration.worker.harness import Shop
from tests.services.payments import Payments

PAIRS = ["redis+postgresql", "redis+sqlite", "redis+redis", "amqp+postgresql"]
SOME = ["redis+postgresql", pytest.param("redis+redis", marks=pytest.mark.soak)]
BETWEEN = "step.end.before:2"
"""The payment has been answered, and nothing of the answer is in the ledger."""


def killed_at(shop: Shop, point: str, name: str, order: str) -> AsyncResult:
    """Have the worker's child die once at a crash point of this order's task."""
    death = shop.folder / f"death-{name}-{order}"
    shop.add(env={"EFFECTONCE_CRASH": point, "EFFECTONCE_CRASH_ONCE": str(death)}, concurrency=1)
    result = shop.send(name, order)
    shop.wait(death.exists, f"somebody died at {point}")
    return result


def entry_of(shop: Shop, key: str) -> Entry:
    found: list[Entry] = shop.once.ledger.find(key)
    (entry,) = found
    return entry


def steps_of(shop: Shop, key: str) -> dict[str, Step]:
    return {step.name: step for step in shop.once.ledger.steps(entry_of(shop, key).digest)}


@pytest.fixture(autouse=True)
def _ends_workers(shop: Shop) -> Iterator[None]:
    """Each test arms its own workers."""
    yield
    shop.end_workers()


@pytest.mark.parametrize("pair", PAIRS)
def test_a_kill_between_the_answer_and_the_end_of_a_step_charges_once(
    shop: Shop, payments: Payments, pair: str
) -> None:
    """The outside honours the key, and sees the same one in both attempts; what was finished is not run again."""
    result = killed_at(shop, BETWEEN, "pay", pair)
    assert result.get(timeout=60).startswith("charge ")
    assert payments.charged(pair) == 1
    assert (len(payments.keys(pair)), len(set(payments.keys(pair)))) == (2, 1)
    assert len(shop.outside(f"reserve:{pair}")) == 1
    assert len(shop.outside(f"mail:{pair}")) == 1
    assert {name: step.ended is not None for name, step in steps_of(shop, f"pay:{pair}").items()} == {
        "reserve": True,
        "pay": True,
        "mail": True,
    }


@pytest.mark.parametrize("pair", ["redis+redis", pytest.param("amqp+postgresql", marks=pytest.mark.soak)])
def test_a_step_that_was_not_finished_is_held_where_the_task_says_so(shop: Shop, payments: Payments, pair: str) -> None:
    result = killed_at(shop, BETWEEN, "pay_held", f"held-{pair}")
    order, key = f"held-{pair}", f"pay-held:held-{pair}"
    shop.wait(lambda: result.state == "HELD", "the result says that it is held")
    assert entry_of(shop, key).state is State.UNKNOWN
    assert len(shop.once.ledger.held(entry_of(shop, key).digest)) == 1
    assert payments.charged(order) == 1
    assert steps_of(shop, key)["pay"].ended is None
    assert shop.outside(f"mail:{order}") == []


@pytest.mark.parametrize(("pair", "honours"), [("redis+postgresql", False)])
def test_an_outside_that_honours_no_key_charges_twice_unless_the_step_is_held(
    shop: Shop, payments: Payments, pair: str, honours: bool
) -> None:
    """What the two words mean: "retry" is for receivers that know the key, "hold" for all others."""
    assert killed_at(shop, BETWEEN, "pay", "7").get(timeout=60)
    assert payments.charged("7") == 2
    shop.end_workers()
    result = killed_at(shop, BETWEEN, "pay_held", "8")
    shop.wait(lambda: result.state == "HELD", "the result says that it is held")
    assert payments.charged("8") == 1


@pytest.mark.parametrize("pair", SOME)
def test_a_skipped_step_is_done_at_most_once_and_reported(shop: Shop, payments: Payments, pair: str) -> None:
    result = killed_at(shop, "step.end.before", "pay_skipped", f"skipped-{pair}")
    assert result.get(timeout=60) == "maybe paid"
    assert payments.charged(f"skipped-{pair}") == 1
    shop.wait_log("effect.unknown")
    assert steps_of(shop, f"pay-skipped:skipped-{pair}")["pay"].skipped


@pytest.mark.parametrize("pair", SOME)
@pytest.mark.parametrize(
    ("point", "requests"), [(BETWEEN, 1), ("step.begin.after:2", 1)], ids=["it was charged", "it was not"]
)
def test_the_outside_is_asked_about_a_step_that_nobody_saw_end(
    shop: Shop, payments: Payments, pair: str, point: str, requests: int
) -> None:
    order = f"asked-{point}-{pair}"
    result = killed_at(shop, point, "pay_asked", order)
    assert result.get(timeout=60).startswith("charge ")
    assert payments.charged(order) == 1
    assert len(payments.keys(order)) == requests


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_one_step_can_be_held_in_a_task_that_retries(shop: Shop, payments: Payments, pair: str) -> None:
    result = killed_at(shop, BETWEEN, "pay_here", "here")
    shop.wait(lambda: result.state == "HELD", "the result says that it is held")
    assert payments.charged("here") == 1


@pytest.mark.parametrize("pair", SOME)
def test_a_body_without_steps_that_died_is_held_where_the_task_says_so(
    shop: Shop, payments: Payments, pair: str
) -> None:
    result = killed_at(shop, "body.after", "plain_held", f"plain-{pair}")
    shop.wait(lambda: result.state == "HELD", "the result says that it is held")
    assert payments.charged(f"plain-{pair}") == 1


@pytest.mark.parametrize("pair", SOME)
def test_the_rescuer_leaves_to_a_person_what_a_time_limit_cut_off(shop: Shop, payments: Payments, pair: str) -> None:
    """Celery acknowledges the message of a body that it kills: nobody comes again to find out."""
    order = f"limit-{pair}"
    shop.shut(f"paid-{order}")
    shop.start()
    shop.send("plain_held", order, time_limit=1)
    shop.wait_at(f"paid-{order}")
    key = f"plain-held:{order}"
    shop.wait(lambda: entry_of(shop, key).state is State.UNKNOWN, "the rescuer has been there")
    assert payments.charged(order) == 1


@pytest.mark.parametrize("pair", ["redis+postgresql"])
def test_an_answer_that_was_lost_on_the_way_is_held_at_once(shop: Shop, payments: Payments, pair: str) -> None:
    """Nobody died: the call raised, and its error does not say whether it was carried out."""
    payments.deaf.add("deaf")
    shop.start()
    result = shop.send("pay_held", "deaf")
    shop.wait(lambda: result.state == "HELD", "the result says that it is held")
    assert payments.charged("deaf") == 1
    assert entry_of(shop, "pay-held:deaf").state is State.UNKNOWN
