"""Waiting until a broker holds nothing any more, so that no copy is still to come when a test counts."""

import redis

from tests.integration.worker.harness import Shop

QUEUE = "celery"


def wait_drained(shop: Shop) -> None:
    """Wait until Redis as broker has neither queued nor unacknowledged messages; a copy that waits is one of these."""
    with redis.Redis.from_url(shop.env["SHOP_BROKER"]) as client:
        shop.wait(lambda: client.llen(QUEUE) == client.hlen("unacked") == 0, "the broker holds nothing")
