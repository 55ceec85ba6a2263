"""Bad days of a Redis."""

import re
import time
from collections.abc import Callable, Iterator

import pytest
import redis

from effectonce.domain.claims import State
from effectonce.errors import LedgerUnavailable
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance.scene import DONE, HOUR, entry_of, granted, new_claim, renewal
from tests.services import Redis


@pytest.fixture
def ledger(redis_server: Redis) -> Iterator[RedisLedger]:
    url = redis_server.fresh_url()
    ledger = RedisLedger.open(url)
    ledger.ping()
    yield ledger
    ledger.close()
    redis_server.start()
    redis_server.put_back(url)


@pytest.fixture
def admin(redis_server: Redis) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_server.url) as client:
        yield client


def test_a_dead_server_cannot_be_asked_and_is_asked_again_when_it_is_back(
    ledger: RedisLedger, redis_server: Redis
) -> None:
    held = granted(ledger, new_claim())
    redis_server.kill()
    for question in (lambda: ledger.claim(new_claim()), lambda: ledger.complete(held, DONE), ledger.ping):
        with pytest.raises(LedgerUnavailable):
            question()
    redis_server.start()
    assert ledger.complete(held, DONE)


def test_a_restart_between_two_questions_is_not_noticed(ledger: RedisLedger, redis_server: Redis) -> None:
    """The idle connection is broken and the scripts are gone; neither is the caller's concern."""
    held = granted(ledger, new_claim())
    redis_server.restart()
    assert ledger.complete(held, DONE)
    assert entry_of(ledger, held).result == b"done"


def test_a_server_that_hangs_is_given_up_in_time(redis_server: Redis) -> None:
    ledger = RedisLedger.open(f"{redis_server.fresh_url()}?socket_timeout=0.3&socket_connect_timeout=0.3")
    held = granted(ledger, new_claim())
    redis_server.pause()
    started = time.monotonic()
    with pytest.raises(LedgerUnavailable):
        ledger.claim(new_claim())
    with pytest.raises(LedgerUnavailable):
        RedisLedger.open(f"{redis_server.url}?socket_timeout=0.3&socket_connect_timeout=0.3").ping()
    assert time.monotonic() - started < 3.0
    redis_server.resume()
    assert ledger.complete(held, DONE)
    ledger.close()


def test_an_answer_that_came_too_late_is_not_taken_for_the_next_one(redis_server: Redis) -> None:
    ledger = RedisLedger.open(f"{redis_server.fresh_url()}?socket_timeout=0.3")
    mine = new_claim()
    ledger.ping()
    redis_server.pause()
    with pytest.raises(LedgerUnavailable):
        ledger.claim(mine)
    redis_server.resume()
    other = new_claim()
    assert granted(ledger, other).attempt == other.attempt
    assert entry_of(ledger, other).key == other.key
    ledger.close()


def test_a_replica_is_no_ledger(ledger: RedisLedger, admin: redis.Redis) -> None:
    """After a failover a client may still talk to what is a replica now."""
    admin.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(LedgerUnavailable, match="read only replica"):
            ledger.ping()
        with pytest.raises(LedgerUnavailable, match="read only replica"):
            ledger.claim(new_claim())
    finally:
        admin.replicaof("NO", "ONE")
    ledger.ping()


@pytest.fixture
def full(admin: redis.Redis) -> Iterator[Callable[[], object]]:
    """Leaves the server no memory from here on."""
    yield lambda: admin.config_set("maxmemory", "1")
    admin.config_set("maxmemory", "0")


def test_a_full_server_grants_nothing(ledger: RedisLedger, admin: redis.Redis, full: Callable[[], object]) -> None:
    claim = new_claim()
    full()
    with pytest.raises(LedgerUnavailable, match="maxmemory"):
        ledger.claim(claim)
    admin.config_set("maxmemory", "0")
    assert ledger.read(claim.digest) is None
    assert ledger.rescue(10) == []
    granted(ledger, claim)


def test_a_full_server_still_takes_what_has_happened(ledger: RedisLedger, full: Callable[[], object]) -> None:
    """An effect that took place and cannot be written down would take place again."""
    done, failed, running, unknown = (granted(ledger, new_claim()) for _ in range(4))
    gone = granted(ledger, new_claim(lease=0.0))
    full()
    assert ledger.complete(done, DONE)
    assert ledger.release(failed, retries=0, reset=True, keep=60.0)
    assert ledger.renew([renewal(running, lease=2 * HOUR)]) == {running.attempt}
    ledger.mark_unknown(unknown.digest, unknown.attempt)
    assert [entry.digest for entry in ledger.rescue(10)] == [gone.digest]
    states = {entry.digest: entry.state for entry in ledger.entries(state=None, limit=10)}
    assert states[done.digest] is State.COMPLETED
    assert states[failed.digest] is states[gone.digest] is State.RELEASED
    assert states[running.digest] is State.CLAIMED
    assert states[unknown.digest] is State.UNKNOWN


@pytest.mark.parametrize("command", ["evalsha", "hset", "zadd", "pexpire", "time"])
def test_a_missing_permission_is_found_by_ping(redis_server: Redis, admin: redis.Redis, command: str) -> None:
    admin.acl_setuser("teller", enabled=True, passwords="+hunter2", commands=["+@all", f"-{command}"], keys=["*"])
    ledger = RedisLedger.open(redis_server.fresh_url().replace("://", "://teller:hunter2@"))
    try:
        with pytest.raises(LedgerUnavailable) as refused:
            ledger.ping()
    finally:
        admin.acl_deluser("teller")
        ledger.close()
    assert re.search("can't run this command|no permissions", str(refused.value))
    assert "hunter2" not in str(refused.value)


def test_a_wrong_password_cannot_ask(redis_server: Redis) -> None:
    ledger = RedisLedger.open(redis_server.url.replace("://", "://nobody:hunter2@"))
    with pytest.raises(LedgerUnavailable) as refused:
        ledger.ping()
    assert "hunter2" not in str(refused.value)
