"""A ledger in a database of its own."""

from collections.abc import Callable, Iterator

import pytest
import redis
from redis.connection import Connection

from effectonce.stores.redis.ledger import RedisLedger


@pytest.fixture
def ledger(redis_url: str) -> Iterator[RedisLedger]:
    ledger = RedisLedger.open(redis_url)
    ledger.ping()
    yield ledger
    ledger.close()


@pytest.fixture
def server(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the same database, to look behind the ledger's back."""
    with redis.Redis.from_url(redis_url) as client:
        yield client


@pytest.fixture
def lose_an_answer(ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Have the connection break after the server has done what it was asked, and before its answer is read."""

    def lose() -> list[str]:
        lost: list[str] = []
        read = Connection.read_response

        def broken(connection: Connection, *args: object, **options: object) -> object:
            answer = read(connection, *args, **options)
            if lost:
                return answer
            lost.append("one answer")
            connection.disconnect()
            message = "Connection closed by server."
            raise redis.ConnectionError(message)

        monkeypatch.setattr(Connection, "read_response", broken)
        return lost

    return lose
