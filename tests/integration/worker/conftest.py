"""Shops for the tests of this folder: one for each pair of broker and ledger, shared by the tests of a module.

Each test runs over the pairs in `SHOPS`; a test that wants others, or other pools, parametrizes ``pair`` or ``pool``.
"""

from collections.abc import Callable, Iterator

import pytest

from tests.integration.worker.harness import Shop
from tests.services import Fleet

SHOPS = ["redis+postgresql", "redis+sqlite", "amqp+postgresql"]


@pytest.fixture(scope="module")
def shops(fleet: Fleet) -> Iterator[Callable[[str, str], Shop]]:
    """Open a shop, or give the one that is open."""
    opened: dict[tuple[str, str], Shop] = {}

    def shop(pair: str, pool: str) -> Shop:
        if (pair, pool) not in opened:
            opened[pair, pool] = Shop(fleet, pair, pool=pool)
        return opened[pair, pool]

    yield shop
    for each in opened.values():
        each.close()


@pytest.fixture(params=SHOPS)
def pair(request: pytest.FixtureRequest) -> str:
    """Broker and ledger of this test."""
    return str(request.param)


@pytest.fixture
def pool() -> str:
    """The worker's pool; a test that wants others parametrizes it."""
    return "prefork"


@pytest.fixture
def shop(shops: Callable[[str, str], Shop], pair: str, pool: str) -> Shop:
    """The app of this test, as new."""
    shop = shops(pair, pool)
    shop.reset()
    return shop
