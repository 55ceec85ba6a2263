"""What the model found in the product: three faults that are mended, each missed when it is undone, and one gap.

The gap is Celery's own: a hard time limit makes the main process acknowledge and store FAILURE, whatever the child has
committed by then (DESIGN 4, rule 11: the exception is stated). The model says what giving the message back would mend.
"""

import pytest

from tests.model.brokers import RabbitMQ, Redis
from tests.model.games import Ending, Game, Rule
from tests.model.verdicts import breaks, holds
from tests.model.worlds import Budget

BROKERS = pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
POLICIES = pytest.mark.parametrize("transactional", [True, False], ids=["transactional", "leased"])


@BROKERS
def test_a_fenced_holder_that_fails_puts_its_delivery_off(broker: Redis | RabbitMQ) -> None:
    game = Game(broker=broker, transactional=False, budget=Budget(failures=1, sleeps=1, early=1))
    holds(game, at_least=800)
    breaks(game.without(Rule.FENCED_FAILURE_DEFERS), "NoFalseFailure: FAILURE by a fenced holder")


@BROKERS
def test_a_fenced_holder_that_raises_an_error_of_ours_puts_its_delivery_off(broker: Redis | RabbitMQ) -> None:
    game = Game(broker=broker, transactional=False, ours=True, budget=Budget(failures=1, sleeps=1, early=1))
    breaks(game, "NoFalseFailure: FAILURE by a fenced holder")
    holds(game.with_rules(Rule.FENCED_ERROR_DEFERS))


@BROKERS
def test_a_fenced_holder_that_ends_by_ignore_puts_its_delivery_off(broker: Redis | RabbitMQ) -> None:
    budget = Budget(kills=1, sleeps=1, early=1)
    game = Game(broker=broker, transactional=False, ending=Ending.IGNORE, continues=False, budget=budget)
    holds(game, at_least=1000)
    breaks(game.without(Rule.FENCED_IGNORE_DEFERS), "NoLoss")


@BROKERS
@POLICIES
def test_the_result_of_a_message_with_error_links_is_kept(broker: Redis | RabbitMQ, *, transactional: bool) -> None:
    game = Game(
        broker=broker,
        transactional=transactional,
        continues=False,
        errbacks=True,
        large=True,
        budget=Budget(kills=1),
    )
    holds(game)
    breaks(game.without(Rule.ERRBACKS_KEEP_RESULT), "NoFalseFailure: FAILURE and error links for work that is done")


@BROKERS
def test_a_holder_with_an_open_transaction_is_not_set_aside(broker: Redis | RabbitMQ) -> None:
    game = Game(broker=broker, transactional=True, most=1, budget=Budget(early=2, sleeps=1))
    holds(game, at_least=1000)
    breaks(game.without(Rule.LIVING_IS_NOT_POISONED), "NoLoss: the work of a living holder was set aside")


@BROKERS
@POLICIES
def test_a_hard_time_limit_after_the_settlement_is_a_false_failure(
    broker: Redis | RabbitMQ, *, transactional: bool
) -> None:
    budget = Budget(limits=1, early=1, sleeps=1)
    game = Game(broker=broker, transactional=transactional, late_limits=True, budget=budget)
    breaks(game, "NoFalseFailure: FAILURE for work that is done")
    holds(game.with_rules(Rule.LIMIT_COMES_BACK), at_least=800)
