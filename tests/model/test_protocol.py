"""The protocol as the product has it, at every interleaving within small bounds; `test_soak` goes further.

Each row of `SIZES` is the least number of worlds that a game has at each of the four places, so that a model which
shrinks unseen fails: what was counted when the row was written, less a tenth.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.model.conftest import PLACES
from tests.model.games import Ending, Game
from tests.model.verdicts import holds
from tests.model.worlds import Budget

SIZES: Final[Mapping[str, tuple[int, ...]]] = {
    "two_workers_may_be_killed_twice_and_overtaken_once": (8224, 3978, 11029, 3823),
    "three_workers_may_meet_a_kill_a_copy_and_a_sleeper": (5526, 3414, 7754, 3258),
    "three_workers_may_oversleep_twice": (1261, 1035, 1629, 1104),
    "a_duplicate_under_another_id_goes_on_from_the_same_effect": (12580, 7642, 22566, 11025),
    "a_duplicate_under_another_id_may_oversleep": (3306, 2343, 2278, 1713),
    "a_retry_may_meet_its_original_a_kill_and_a_sleeper": (15590, 10089, 17669, 9288),
    "a_lost_child_may_be_retried_by_celery": (4977, 3382, 6032, 3008),
    "a_failed_body_may_run_again_for_a_late_copy": (1823, 1323, 2514, 1316),
    "a_remembered_failure_is_replayed_with_its_error_links": (1209, 885, 3763, 2313),
    "a_remembered_failure_may_meet_a_copy_of_its_message": (1008, 752, 3123, 1604),
    "the_ledger_may_be_away_at_any_step": (2872, 1737, 5512, 2522),
    "broker_and_backend_may_refuse_at_any_step": (2898, 2361, 1325, 1089),
    "parts_of_a_chord_are_counted_whoever_dies": (1600, 1186, 2300, 1632),
    "others_may_be_skipped_and_nobody_is_because_of_itself": (6714, 4705, 7445, 4230),
    "a_message_without_continuation_ends_with_its_answer": (851, 624, 963, 667),
    "an_effect_that_ends_by_ignore_is_done": (4489, 2615, 5643, 2619),
    "machines_may_vanish_with_open_transactions": (2584, 1493, 2591, 1716),
    "a_deadly_message_is_set_aside_in_the_end": (880, 532, 2648, 1395),
    "holders_that_die_and_wake_late_are_not_set_aside_once_done": (3357, 2331, 4077, 2106),
}


@pytest.fixture
def least(request: pytest.FixtureRequest, place: str) -> int:
    """How many worlds this game must have."""
    return SIZES[request.function.__name__.removeprefix("test_")][list(PLACES).index(place)]


def test_two_workers_may_be_killed_twice_and_overtaken_once(game: Callable[..., Game], least: int) -> None:
    holds(game(budget=Budget(kills=2, early=1, sleeps=1)), at_least=least)


def test_three_workers_may_meet_a_kill_a_copy_and_a_sleeper(game: Callable[..., Game], least: int) -> None:
    holds(game(workers=3, budget=Budget(kills=1, early=1, sleeps=1)), at_least=least)


def test_three_workers_may_oversleep_twice(game: Callable[..., Game], least: int) -> None:
    holds(game(workers=3, budget=Budget(early=1, sleeps=2)), at_least=least)


def test_a_duplicate_under_another_id_goes_on_from_the_same_effect(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, budget=Budget(kills=1, early=1)), at_least=least)


def test_a_duplicate_under_another_id_may_oversleep(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, budget=Budget(kills=1, sleeps=1)), at_least=least)


def test_a_retry_may_meet_its_original_a_kill_and_a_sleeper(game: Callable[..., Game], least: int) -> None:
    holds(game(budget=Budget(kills=1, early=1, sleeps=1, retries=1)), at_least=least)


def test_a_lost_child_may_be_retried_by_celery(game: Callable[..., Game], least: int) -> None:
    holds(game(lost_retry=True, budget=Budget(kills=1, early=1, retries=1)), at_least=least)


def test_a_failed_body_may_run_again_for_a_late_copy(game: Callable[..., Game], least: int) -> None:
    holds(game(budget=Budget(kills=1, early=1, failures=1)), at_least=least)


def test_a_remembered_failure_is_replayed_with_its_error_links(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, ending=Ending.REMEMBERED, budget=Budget(kills=1)), at_least=least)


def test_a_remembered_failure_may_meet_a_copy_of_its_message(game: Callable[..., Game], least: int) -> None:
    holds(game(ending=Ending.REMEMBERED, budget=Budget(early=2, sleeps=1)), at_least=least)


def test_the_ledger_may_be_away_at_any_step(game: Callable[..., Game], least: int) -> None:
    holds(game(budget=Budget(kills=1, early=1, outages=1)), at_least=least)


def test_broker_and_backend_may_refuse_at_any_step(game: Callable[..., Game], least: int) -> None:
    holds(game(budget=Budget(kills=1, refusals=1, unstored=1, retries=1)), at_least=least)


def test_parts_of_a_chord_are_counted_whoever_dies(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, chord=True, budget=Budget(kills=1)), at_least=least)


def test_others_may_be_skipped_and_nobody_is_because_of_itself(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, continues=False, skips=True, budget=Budget(kills=1, early=1)), at_least=least)


def test_a_message_without_continuation_ends_with_its_answer(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, continues=False, budget=Budget(kills=1)), at_least=least)


def test_an_effect_that_ends_by_ignore_is_done(game: Callable[..., Game], least: int) -> None:
    holds(game(messages=2, ending=Ending.IGNORE, continues=False, budget=Budget(kills=1, early=1)), at_least=least)


def test_machines_may_vanish_with_open_transactions(game: Callable[..., Game], least: int) -> None:
    holds(game(vanishes=True, budget=Budget(kills=2, early=1)), at_least=least)


def test_a_deadly_message_is_set_aside_in_the_end(game: Callable[..., Game], least: int) -> None:
    holds(game(deadly=True, most=3, messages=2), at_least=least)


def test_holders_that_die_and_wake_late_are_not_set_aside_once_done(game: Callable[..., Game], least: int) -> None:
    holds(game(most=2, budget=Budget(kills=1, early=1, sleeps=1)), at_least=least)
