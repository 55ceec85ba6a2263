"""A rolling deploy: old and new code of a task work side by side on one ledger."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery

from effectonce import EffectKeyReused, EffectOnce, Leased

_numbers = itertools.count()
Bodies = list[str]


@pytest.fixture
def bodies() -> Bodies:
    return []


@pytest.fixture
def ledger() -> str:
    return f"memory://versions{next(_numbers)}"


@pytest.fixture
def old(make_app: Callable[..., Celery], ledger: str, bodies: Bodies) -> Any:
    """The task as it was deployed last."""
    app = make_app()
    EffectOnce(app, ledger=ledger)

    def charge(order: int, amount: int) -> str:
        bodies.append("old")
        return f"old {order} {amount}"

    return app.task(name="shop.charge", shared=False, once=Leased("charge:{order}"))(charge)


@pytest.fixture
def new(make_app: Callable[..., Celery], ledger: str, bodies: Bodies) -> Any:
    """As it is being deployed: one more parameter, and its default."""
    app = make_app()
    EffectOnce(app, ledger=ledger)

    def charge(order: int, amount: int, currency: str = "EUR") -> str:
        bodies.append("new")
        return f"new {order} {amount} {currency}"

    return app.task(name="shop.charge", shared=False, once=Leased("charge:{order}", max_takeovers=9))(charge)


def test_what_the_old_code_did_the_new_code_does_not_do_again(old: Any, new: Any, bodies: Bodies) -> None:
    """The new default is no other argument: it is left out of the fingerprint."""
    assert old.apply((1, 5)).get() == "old 1 5"
    assert new.apply((1, 5)).get() == "old 1 5"
    assert new.apply((1,), {"amount": 5, "currency": "EUR"}).get() == "old 1 5"
    assert bodies == ["old"]


def test_what_the_new_code_did_the_old_code_does_not_do_again(old: Any, new: Any, bodies: Bodies) -> None:
    """Also a worker that is rolled back."""
    assert new.apply((2, 5)).get() == "new 2 5 EUR"
    assert old.apply((2, 5)).get() == "new 2 5 EUR"
    assert bodies == ["new"]


def test_an_argument_that_the_old_code_does_not_have_is_another_effect(old: Any, new: Any, bodies: Bodies) -> None:
    old.apply((3, 5)).get()
    with pytest.raises(EffectKeyReused, match="currency"):
        new.apply((3, 5), {"currency": "USD"}).get()
    assert bodies == ["old"]


def test_a_task_that_is_renamed_keeps_its_keys_with_its_scope(
    make_app: Callable[..., Celery], ledger: str, bodies: Bodies
) -> None:
    for name in ("shop.charge", "billing.charge"):
        app = make_app()
        EffectOnce(app, ledger=ledger)

        def charge(order: int, called: str = name) -> str:
            bodies.append(called)
            return called

        task = app.task(name=name, shared=False, once=Leased("charge:{order}", scope="shop.charge"))(charge)
        assert task.apply((4,)).get() == "shop.charge"
    assert bodies == ["shop.charge"]
