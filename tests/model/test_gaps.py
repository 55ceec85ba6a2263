"""What the model found in the product: faults that are mended, each missed when it is undone, and gaps that are not.

A gap is a rule in `games.NOT_YET`: its test shows what the product does without it, and that it would mend that.
Of the hard time limit DESIGN 4 says that the exception is stated (rule 11): Celery's main process acknowledges and
stores FAILURE, whatever the child has committed by then.
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
    holds(game)
    breaks(game.without(Rule.FENCED_ERROR_DEFERS), "NoFalseFailure: FAILURE by a fenced holder")


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


@POLICIES
def test_a_backend_that_is_away_uses_up_no_deliveries(*, transactional: bool) -> None:
    """What H19 is for the ledger; the queue drops the message of an effect whose part is not counted yet."""
    away = Game(broker=RabbitMQ(limit=2), transactional=transactional, budget=Budget(unstored=3))
    holds(away)
    breaks(away.without(Rule.BACKEND_AWAY_DEFERS), "NoLoss: m1 is gone")
