"""The holes that earlier drafts of the protocol had.

Each test plays what its trace needs, shows that the rule which closes it lets nothing go wrong, and that the model
finds the hole when that rule is taken out. Three wait for the part that they are about: H7's parking of far retries
for the outbox (what is tested here is the retry that goes down with its transaction), H15 for `Unique`, H16 for beat.
"""

from collections.abc import Callable

import pytest

from tests.model.brokers import RabbitMQ, Redis
from tests.model.games import Ending, Game, Rule
from tests.model.verdicts import breaks, holds
from tests.model.worlds import Budget


def test_a_copy_of_the_holders_own_message_is_never_skipped(game: Callable[..., Game]) -> None:
    """H1."""
    skipping = game(continues=False, skips=True, budget=Budget(kills=1, early=1))
    holds(skipping)
    breaks(skipping.without(Rule.OWN_IS_DEFERRED), "NoSelfDuplicate: a message was skipped because of itself")


def test_a_redelivery_does_not_answer_for_a_replacement_with_none(game: Callable[..., Game]) -> None:
    """H2."""
    replacing = game(ending=Ending.REPLACE, budget=Budget(kills=1, early=1))
    holds(replacing)
    breaks(replacing.without(Rule.REPLACED_IS_CONTINUED), "NoLoss: a link ran without the replacement's result")


def test_another_id_waits_for_the_replacements_result(game: Callable[..., Game]) -> None:
    """H3."""
    replacing = game(messages=2, ending=Ending.REPLACE)
    holds(replacing)
    breaks(replacing.without(Rule.REPLACED_IS_CONTINUED), "NoLoss: a link ran without the replacement's result")


def test_a_replacement_with_the_same_key_is_no_duplicate(game: Callable[..., Game]) -> None:
    """H4."""
    replacing = game(ending=Ending.REPLACE_SAME_KEY, budget=Budget(kills=1, early=1))
    holds(replacing)
    breaks(replacing.without(Rule.HANDED_ON_IS_RELEASED), "NoStuck")


def test_nothing_about_a_retry_is_stored_before_its_message_is_out(game: Callable[..., Game]) -> None:
    """H5."""
    retrying = game(budget=Budget(kills=1, retries=1))
    holds(retrying)
    breaks(retrying.without(Rule.RETRY_IS_SENT_FIRST), "NoSelfDuplicate: a message was ignored as stale")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_a_retry_does_not_enter_beside_the_one_who_took_over(broker: Redis | RabbitMQ) -> None:
    """H6: where a transaction is open, the lock keeps the retry out; a lease alone does not."""
    sleeping = Game(broker=broker, transactional=False, budget=Budget(early=1, sleeps=1, retries=1))
    holds(sleeping)
    breaks(sleeping.without(Rule.REENTRY_BY_FENCE), "NoDoubleEffect: two holders both believe in their claims")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_a_retry_is_not_rolled_back_with_its_attempt(broker: Redis | RabbitMQ) -> None:
    """H7, as far as it needs no outbox."""
    retrying = Game(broker=broker, transactional=True, budget=Budget(retries=1))
    holds(retrying)
    breaks(retrying.without(Rule.RETRY_IS_SENT_OUTSIDE), "NoLoss: m1 is gone")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_a_sleeper_does_not_complete_the_claim_of_a_restored_ledger(broker: Redis | RabbitMQ) -> None:
    """H8: fences that never go back close it, and so do attempts; only without both is there a hole."""
    restored = Game(broker=broker, transactional=False, budget=Budget(early=1, sleeps=1, reopens=1))
    holds(restored)
    holds(restored.without(Rule.ATTEMPT))
    holds(restored.without(Rule.FENCES_GROW))
    wrong = "NoDoubleEffect: a claim was settled that another attempt holds"
    breaks(restored.without(Rule.ATTEMPT, Rule.FENCES_GROW), wrong)


def test_a_claim_without_a_message_does_not_stand_for_ever(game: Callable[..., Game]) -> None:
    """H9."""
    limited = game(budget=Budget(kills=1, early=1, limits=1))
    holds(limited)
    if limited.transactional:
        limited = game(budget=Budget(kills=1, limits=1))
    breaks(limited.without(Rule.RESCUER), "NoStuck: the key is claimed for ever")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_a_vanished_machine_does_not_lock_a_key_for_ever(broker: Redis | RabbitMQ) -> None:
    """H10."""
    vanishing = Game(broker=broker, transactional=True, vanishes=True, budget=Budget(kills=1))
    holds(vanishing)
    breaks(vanishing.without(Rule.SESSIONS_END), "NoStuck")


def test_a_part_is_counted_though_its_child_died_after_success(game: Callable[..., Game]) -> None:
    """H11."""
    chord = game(chord=True, budget=Budget(kills=1))
    holds(chord)
    breaks(chord.without(Rule.SUCCESS_COMES_BACK), "NoLoss: m1 is gone")


def test_work_that_is_done_does_not_fail_for_want_of_broker_or_backend(game: Callable[..., Game]) -> None:
    """A78: H12."""
    refused = game(budget=Budget(refusals=1, unstored=1))
    holds(refused)
    breaks(
        game(budget=Budget(unstored=1)).without(Rule.FAILED_DISPATCH_COMES_BACK), "NoFalseFailure: FAILURE and error"
    )
    breaks(refused.without(Rule.FAILED_DISPATCH_COMES_BACK), "NoFalseFailure: FAILURE and error links for work")


def test_a_result_that_must_go_on_is_kept_whatever_its_size(game: Callable[..., Game]) -> None:
    """H13."""
    large = game(large=True, budget=Budget(kills=1))
    holds(large)
    breaks(large.without(Rule.CONTINUED_RESULT_IS_KEPT), "NoFalseFailure: FAILURE and error links for work")


@pytest.mark.parametrize("broker", [Redis(), RabbitMQ()], ids=["redis", "rabbitmq"])
def test_a_lost_commit_is_asked_about_under_the_lock(broker: Redis | RabbitMQ) -> None:
    """H14."""
    uncertain = Game(broker=broker, transactional=True, budget=Budget(outages=2, early=1))
    holds(uncertain)
    breaks(uncertain.without(Rule.COMMIT_IS_ASKED_UNDER_LOCK), "NoFalseFailure: FAILURE and error links for work")


def test_a_broker_that_does_not_flag_has_every_start_counted() -> None:
    """H17."""
    silent = Game(broker=Redis(flags=False), transactional=True, deadly=True, most=3)
    holds(silent)
    breaks(silent.without(Rule.SILENCE_COUNTS_ALL), "NoStuck: no road leads to an end")


def test_a_copy_is_confirmed_before_its_delivery_is_acknowledged(game: Callable[..., Game]) -> None:
    """H18."""
    refusing = game(budget=Budget(early=1, refusals=1), messages=2)
    holds(refusing)
    breaks(refusing.without(Rule.COPY_IS_CONFIRMED), "NoLoss: m")


@pytest.mark.parametrize("transactional", [False, True])
def test_a_ledger_that_is_away_uses_up_no_deliveries(*, transactional: bool) -> None:
    """H19."""
    away = Game(broker=RabbitMQ(limit=2), transactional=transactional, budget=Budget(outages=3))
    holds(away)
    breaks(away.without(Rule.AWAY_DEFERS), "NoLoss: m1 is gone")


def test_a_copy_does_not_expire_while_it_waits(game: Callable[..., Game]) -> None:
    """H20."""
    busy = game(messages=2, chord=True)
    holds(busy)
    breaks(busy.without(Rule.COPY_HAS_NO_EXPIRY), "NoLoss: m")
