"""Shops whose app has the tasks of this folder; see the fixtures of the folder ``worker``."""

from collections.abc import Callable, Iterator

import pytest

from tests.integration.worker.harness import Shop
from tests.services import Fleet

APP = "tests.integration.policies.tasks"
STORES = ["redis+postgresql", "redis+sqlite", "redis+redis", "amqp+postgresql"]


@pytest.fixture(scope="package")
def shops(fleet: Fleet) -> Iterator[Callable[[str], Shop]]:
    """Open a shop, or give the one that is open."""
    opened: dict[str, Shop] = {}

    def shop(pair: str) -> Shop:
        if pair not in opened:
            opened[pair] = Shop(fleet, pair, app=APP)
        return opened[pair]

    yield shop
    for each in opened.values():
        each.close()


@pytest.fixture(params=STORES)
def pair(request: pytest.FixtureRequest) -> str:
    """Broker and ledger of this test."""
    return str(request.param)


@pytest.fixture
def shop(shops: Callable[[str], Shop], pair: str) -> Shop:
    """The app of this test, as new."""
    shop = shops(pair)
    shop.reset()
    return shop
