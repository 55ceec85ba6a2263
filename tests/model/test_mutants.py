"""The model finds what it was made to find: each rule taken out breaks an invariant, at every place that needs it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.model.brokers import RabbitMQ, Redis
from tests.model.games import Game, Rule
from tests.model.verdicts import breaks, holds
from tests.model.worlds import Budget


def test_the_fence_predicate_is_missed(game: Callable[..., Game]) -> None:
    overtaken = game(budget=Budget(kills=1, early=1, sleeps=1))
    holds(overtaken)
    breaks(overtaken.without(Rule.FENCE), "NoDoubleEffect: a claim was")


def test_an_acknowledgement_before_the_copy_is_found(game: Callable[..., Game]) -> None:
    busy = game(budget=Budget(early=1))
    holds(busy)
    breaks(game(messages=2).without(Rule.COPY_BEFORE_ACK), "NoLoss: m")


@pytest.mark.parametrize("transactional", [False, True])
def test_the_bare_acknowledgement_of_a_fenced_holder_is_found(*, transactional: bool) -> None:
    """Where a redelivery shares its tag, it takes the message from under the new holder."""
    overtaken = Game(broker=Redis(), transactional=transactional, budget=Budget(kills=1, early=1, sleeps=1))
    holds(overtaken)
    seen = breaks(overtaken.without(Rule.FENCED_DEFERS), "NoLoss: m1 is gone")
    assert "acknowledges" in seen.trace.splitlines()[-1]


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_entering_again_by_the_tasks_id_is_found(broker: Redis | RabbitMQ) -> None:
    sleeping = Game(broker=broker, transactional=False, workers=3, budget=Budget(early=1, sleeps=1, retries=1))
    holds(sleeping)
    breaks(sleeping.without(Rule.REENTRY_BY_FENCE), "NoDoubleEffect: two holders")


def test_a_number_of_retries_that_outlives_its_message_is_found(game: Callable[..., Game]) -> None:
    seen = breaks(game(budget=Budget(kills=1, retries=1)).without(Rule.RETRY_IS_SENT_FIRST), "NoSelfDuplicate")
    assert "stores the retry's number" in seen.trace


def test_a_skip_because_of_itself_is_found(game: Callable[..., Game]) -> None:
    skipping = game(continues=False, skips=True, budget=Budget(early=1)).without(Rule.OWN_IS_DEFERRED)
    if skipping.transactional:
        skipping = game(continues=False, skips=True, budget=Budget(kills=1, early=1)).without(Rule.OWN_IS_DEFERRED)
    breaks(skipping, "NoSelfDuplicate")


def test_ignoring_what_is_done_and_not_continued_is_found(game: Callable[..., Game]) -> None:
    killed = game(budget=Budget(kills=1))
    holds(killed)
    breaks(killed.without(Rule.UNFINISHED_GOES_ON), "NoLoss: m1 is gone")


def test_links_that_are_not_frozen_are_found(game: Callable[..., Game]) -> None:
    killed = game(budget=Budget(kills=1))
    breaks(killed.without(Rule.LINKS_ARE_FROZEN), "NoDoubleEffect: a continuation went out under two ids")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_an_idempotency_key_of_the_attempt_is_found(broker: Redis | RabbitMQ) -> None:
    killed = Game(broker=broker, transactional=False, budget=Budget(kills=1))
    breaks(killed.without(Rule.ONE_IDEMPOTENCY_KEY), "NoDoubleEffect: the outside was shown two")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_poison_for_what_a_late_waker_has_done_is_found(broker: Redis | RabbitMQ) -> None:
    waking = Game(broker=broker, transactional=False, most=1, budget=Budget(early=1, sleeps=1))
    holds(waking)
    breaks(waking.without(Rule.DONE_IS_NOT_POISONED), "NoLoss: an effect that is done was set aside")


def test_every_rule_that_stands_is_missed_by_some_test() -> None:
    """A rule without a mutant might as well not be there."""
    texts = [_text(name) for name in ("test_holes.py", "test_mutants.py", "test_gaps.py")]
    assert [rule.name for rule in Rule if not any(f"Rule.{rule.name}" in text for text in texts)] == []


def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text()
