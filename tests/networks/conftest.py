"""Shops whose workers reach their broker and their ledger over networks that the test spoils.

The test itself sends and looks over the direct way. A module's shops outlive its tests; leases are so long that no
test can wait for the end of one by mistake, unless the module says otherwise (``LEASE``; ``OPTIONS`` of the worker;
``QUERY`` of its ledger's URL, one for all pairs or one for each; ``CONCURRENCY``).
"""

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis

from effectonce.lab.processes import Worker
from effectonce.lab.proxy import Proxy
from effectonce.lab.reaper import Reaper
from tests.integration.worker.harness import Shop
from tests.services import Fleet

_orders = itertools.count(1)


class Market(Shop):
    """A shop with two networks between its workers and their servers."""

    def __init__(
        self, fleet: Fleet, pair: str, *, lease: float, options: tuple[str, ...], query: str, concurrency: int
    ) -> None:
        super().__init__(fleet, pair, settings={"SHOP_LEASE": str(lease)})
        self.lease = lease
        self.options = options
        self.query = query
        self.concurrency = concurrency
        self._reaper = Reaper()
        self.broker = Proxy(self.env["SHOP_BROKER"])
        self.ledger = Proxy(self.env["SHOP_LEDGER"])

    def add(self, **options: Any) -> Worker:
        """One more worker, behind the networks."""
        spoiled = {"SHOP_BROKER": self.broker.url, "SHOP_LEDGER": self.ledger.url + self.query}
        return super().add(
            **{
                "concurrency": self.concurrency,
                "options": self.options,
                **options,
                "env": {**spoiled, **options.get("env", {})},
            }
        )

    def supervise(self, ready: Callable[[], bool], what: str) -> None:
        """Wait; start a worker again that ended, as kombu 5.7 makes it when Redis refuses it."""

        def supervised() -> bool:
            self.start()
            return ready()

        self.wait(supervised, what)

    def states(self, ids: list[str]) -> list[str | None]:
        """The states in the result backend, None where it has none; a client that is new survives a restart."""
        with redis.Redis.from_url(self.env["SHOP_RESULTS"]) as client:
            stored = client.mget([f"celery-task-meta-{each}" for each in ids])
        return [None if each is None else json.loads(each)["status"] for each in stored]

    def deferred(self) -> str:
        """The log lines that say that something was put off."""
        return "\n".join(line for line in self.logs().splitlines() if "effect.deferred" in line)

    def waiting(self) -> int:
        """How many messages wait in the queue on Redis."""
        with redis.Redis.from_url(self.env["SHOP_BROKER"]) as client:
            return int(client.llen("celery"))

    def reset(self) -> None:
        """Heal both networks, and forget the rest."""
        self.broker.heal()
        self.ledger.heal()
        super().reset()

    def close(self) -> None:
        """End workers, then networks."""
        self.broker.heal()
        self.ledger.heal()
        super().close()
        self.broker.close()
        self.ledger.close()
        self._reaper.close()


@pytest.fixture(scope="module")
def markets(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[Callable[[str], Market]]:
    """Open a market, or give the one that is open."""
    opened: dict[str, Market] = {}
    lease = getattr(request.module, "LEASE", 60.0)
    options = getattr(request.module, "OPTIONS", ())
    query = getattr(request.module, "QUERY", "")
    concurrency = getattr(request.module, "CONCURRENCY", 1)

    def market(pair: str) -> Market:
        if pair not in opened:
            asked = query if isinstance(query, str) else query[pair]
            opened[pair] = Market(fleet, pair, lease=lease, options=options, query=asked, concurrency=concurrency)
        return opened[pair]

    yield market
    for each in opened.values():
        each.close()


@pytest.fixture
def pair() -> str:
    """Broker and ledger of this test; a test that wants others parametrizes it."""
    return "redis+postgresql"


@pytest.fixture
def market(markets: Callable[[str], Market], pair: str) -> Market:
    """The shop of this test with a worker behind its networks, all of them well."""
    market = markets(pair)
    market.reset()
    market.start()
    return market


@pytest.fixture
def order() -> int:
    """A number that no other test has: what an earlier one left in the broker is not about it."""
    return next(_orders)


@pytest.fixture
def proxied() -> Iterator[Callable[[str], Proxy]]:
    """Put a proxy before a URL."""
    with ExitStack() as proxies:
        yield lambda url: proxies.enter_context(Proxy(url))
