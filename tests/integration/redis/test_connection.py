"""Which clients a ledger takes, and what it says of them."""

import pickle
import ssl
from typing import Any

import pytest
import redis

from effectonce.errors import LedgerUnavailable, SettingsInvalid
from effectonce.stores.redis.connection import PATIENCE
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance.scene import DONE, entry_of, granted, new_claim

NAMES = {
    "redis://:hunter2@localhost/3": "redis://localhost:6379/3",
    "redis://user:hunter2@cache.internal:7000": "redis://cache.internal:7000/0",
    "redis://cache?password=hunter2&db=2": "redis://cache:6379/2",
    "redis://user:hunter2@[::1]:7000/1": "redis://[::1]:7000/1",
    "rediss://user:hunter2@cache:7000/1": "rediss://cache:7000/1",
    "unix://user:hunter2@/run/redis.sock?db=4": "unix:///run/redis.sock?db=4",
    "valkey://:hunter2@localhost/3": "redis://localhost:6379/3",
    "valkeys://:hunter2@localhost/3": "rediss://localhost:6379/3",
}


@pytest.mark.parametrize(("url", "name"), NAMES.items(), ids=NAMES.values())
def test_a_ledger_is_named_by_its_url_without_the_password(url: str, name: str) -> None:
    assert RedisLedger.open(url).name == name


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hunter2/tail@localhost/3",
        "redis://user:hunter2@localhost:port/3",
        "http://user:hunter2@localhost",
        "redis://user:hunter2@localhost/3?socket_timeout=soon",
        "redis://user:hunter2@localhost/3?sockettimeout=3",
    ],
)
def test_an_unreadable_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(SettingsInvalid) as refused:
        RedisLedger.open(url)
    assert "hunter2" not in str(refused.value)
    assert "hunter2" not in str(refused.value.__cause__)


@pytest.mark.parametrize("given", [None, 7, object(), redis.ConnectionPool(), redis.asyncio.Redis()])
def test_what_is_no_client_is_refused(given: Any) -> None:
    with pytest.raises(SettingsInvalid, match=type(given).__name__):
        RedisLedger.open(given)


def test_a_client_that_decodes_is_refused(redis_url: str) -> None:
    with (
        redis.Redis.from_url(redis_url, decode_responses=True) as client,
        pytest.raises(SettingsInvalid, match="decode_responses"),
    ):
        RedisLedger.open(client)


@pytest.mark.parametrize("options", ["", "?decode_responses=True", "?protocol=2", "?protocol=3"])
def test_bytes_stay_bytes_whatever_the_url_says(redis_url: str, options: str) -> None:
    ledger = RedisLedger.open(redis_url + options)
    held = granted(ledger, new_claim())
    ledger.complete(held, DONE)
    ledger.mark_unknown(held.digest, held.attempt)
    ledger.hold(held.digest, b"\xff")
    assert entry_of(ledger, held).result == b"done"
    assert list(ledger.held(held.digest)) == [b"\xff"]
    ledger.close()


def test_a_given_client_is_used_and_left_open(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        ledger = RedisLedger.open(client)
        granted(ledger, new_claim())
        ledger.close()
        assert ledger.name.startswith("redis://")
        assert client.dbsize() > 0


def test_a_client_of_ours_does_not_wait_for_ever() -> None:
    options = RedisLedger.open("redis://localhost")._client.connection_pool.connection_kwargs
    assert (options["socket_timeout"], options["socket_connect_timeout"]) == (PATIENCE, PATIENCE)


def test_the_url_may_say_how_long_to_wait() -> None:
    options = RedisLedger.open("redis://localhost?socket_timeout=0.5")._client.connection_pool.connection_kwargs
    assert options["socket_timeout"] == 0.5


def test_opening_connects_to_nothing() -> None:
    RedisLedger.open("redis://localhost:1")
    RedisLedger.open("rediss://localhost:1?ssl_cert_reqs=none")
    assert ssl.HAS_TLSv1_2


def test_nobody_there_is_a_ledger_that_cannot_be_asked() -> None:
    with pytest.raises(LedgerUnavailable) as away:
        RedisLedger.open("redis://user:hunter2@localhost:1").claim(new_claim())
    assert "redis://localhost:1/0" in str(away.value)
    assert "hunter2" not in str(away.value)
    assert pickle.loads(pickle.dumps(away.value)).facts == away.value.facts  # noqa: S301 - our own bytes


def test_a_key_with_a_lone_surrogate_comes_through(redis_url: str) -> None:
    """JSON can carry one, so a message can."""
    ledger = RedisLedger.open(redis_url)
    claim = new_claim(key="broken:\ud800", task_id="\udfff")
    granted(ledger, claim)
    assert [(entry.key, entry.task_id) for entry in ledger.find(claim.key)] == [(claim.key, claim.task_id)]
    ledger.close()
