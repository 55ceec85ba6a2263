"""Shops that pay outside, one for each pair of broker and ledger, and the payment servers."""

from collections.abc import Callable, Iterator

import pytest

from tests.integration.worker.harness import Shop
from tests.services import Fleet
from tests.services.payments import Payments

APP = "tests.integration.steps.paying"


@pytest.fixture(scope="module")
def servers() -> Iterator[Callable[[bool], Payments]]:
    """The payment server that honours keys, or the one that does not."""
    opened: dict[bool, Payments] = {}

    def payments(honours: bool) -> Payments:
        return opened.setdefault(honours, opened.get(honours) or Payments(honours=honours))

    yield payments
    for each in opened.values():
        each.close()


@pytest.fixture
def honours() -> bool:
    """Whether the server honours idempotency keys; a test that wants the other one parametrizes it."""
    return True


@pytest.fixture
def payments(servers: Callable[[bool], Payments], honours: bool) -> Payments:
    """The payment server of this test."""
    return servers(honours)


@pytest.fixture(scope="module")
def shops(fleet: Fleet) -> Iterator[Callable[[str, Payments], Shop]]:
    """Open a shop, or give the one that is open."""
    opened: dict[tuple[str, str], Shop] = {}

    def shop(pair: str, payments: Payments) -> Shop:
        if (pair, payments.url) not in opened:
            settings = {"SHOP_PAYMENTS": payments.url, "SHOP_LEASE": "1"}
            opened[pair, payments.url] = Shop(fleet, pair, settings=settings, app=APP)
        return opened[pair, payments.url]

    yield shop
    for each in opened.values():
        each.close()


@pytest.fixture
def shop(shops: Callable[[str, Payments], Shop], pair: str, payments: Payments) -> Shop:
    """The app of this test, as new."""
    shop = shops(pair, payments)
    shop.reset()
    return shop
