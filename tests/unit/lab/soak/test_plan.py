"""What a soak draws before anything starts."""

import pytest

from effectonce.lab.soak.plan import ALL, Blow, System, plan_rounds


def test_a_seed_names_a_plan_and_a_longer_one_begins_alike() -> None:
    plan = plan_rounds(rounds=6, seed=1)
    assert plan == plan_rounds(rounds=6, seed=1)
    assert plan == plan_rounds(rounds=20, seed=1)[:6]
    assert plan != plan_rounds(rounds=6, seed=2)


def test_every_system_comes_before_any_comes_again() -> None:
    plan = plan_rounds(rounds=18, seed=3)
    assert all({each.system for each in plan[at : at + 6]} == set(ALL) for at in (0, 6, 12))
    assert {each.renews for each in plan} == {True, False}


@pytest.mark.parametrize("system", ALL, ids=[system.name for system in ALL])
def test_each_blow_that_a_system_can_suffer_is_struck_and_no_other(system: System) -> None:
    struck = {strike.blow for each in plan_rounds(rounds=40, seed=4, systems=[system]) for strike in each.strikes}
    of_a_file = {Blow.FILE_HELD}
    of_a_network = {Blow.STORE_REPLY, Blow.STORE_REQUEST, Blow.STORE_CUT, Blow.STORE_KILL}
    assert struck == set(Blow) - (of_a_network if system.store == "sqlite" else of_a_file)


def test_what_is_sent_fits_its_store_and_its_round() -> None:
    for each in plan_rounds(rounds=12, seed=5, seconds=20.0):
        assert each.orders
        assert [order.number for order in each.orders] == list(range(1, len(each.orders) + 1))
        assert all(0 <= order.at < 20 for order in each.orders)
        assert all(0 <= strike.at < 20 for strike in each.strikes)
        transactional = any(order.task == "charge" for order in each.orders)
        assert transactional is (each.system.store != "redis")
    orders = [order for each in plan_rounds(rounds=12, seed=5) for order in each.orders]
    assert {len(order.repeats) for order in orders} == {0, 1, 2}
    assert {order.retries for order in orders} == {0, 1, 2}
    assert any(order.seconds > 3 for order in orders), "longer than a lease, and than the broker waits"
