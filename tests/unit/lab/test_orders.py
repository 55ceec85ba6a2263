from collections import Counter

import pytest

from effectonce.lab.orders import FEWEST, Trouble, plan_orders


@pytest.mark.parametrize("number", [FEWEST, 5, 60, 100, 1000])
def test_every_trouble_meets_an_order_and_most_orders_meet_none(number: int) -> None:
    orders = plan_orders(number, seed=3)
    troubles = Counter(order.trouble for order in orders)
    assert [order.number for order in orders] == list(range(1, number + 1))
    assert set(troubles) == set(Trouble)
    assert troubles.total() - troubles[Trouble.NONE] <= max(3, number // 8)


def test_a_seed_names_a_plan() -> None:
    assert plan_orders(50, seed=1) == plan_orders(50, seed=1)
    assert plan_orders(50, seed=1) != plan_orders(50, seed=2)


def test_repeats_come_both_soon_and_when_the_first_is_done() -> None:
    quiet = [order for order in plan_orders(50, seed=0) if order.trouble is Trouble.NONE]
    assert {order.gap is None for order in quiet} == {True, False}
