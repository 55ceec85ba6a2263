"""Redis behind Sentinels, and a Cluster: fences, what a fail-over forgets, and what WAIT buys."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis

from effectonce.domain.claims import Claim, Granted, State
from effectonce.errors import LedgerUnavailable, SettingsInvalid
from effectonce.lab.process_tree import wait_until
from effectonce.lab.reaper import Reaper
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance.scene import DONE, MOMENT, entry_of, granted, new_claim, next_attempt, renewal
from tests.services.many_redis import Pair, TwoNodes


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    reaper = Reaper()
    pair = Pair(tmp_path, reaper)
    yield pair
    pair.close()
    reaper.close()


@contextmanager
def opened(url: str) -> Iterator[RedisLedger]:
    ledger = RedisLedger.open(url)
    try:
        yield ledger
    finally:
        ledger.close()


def test_after_a_fail_over_the_ledger_goes_on_and_fences_do_not_go_back(pair: Pair) -> None:
    """What had reached the replica is known there; a holder from before it is fenced by the next one."""
    with opened(f"{pair.watcher.url}?wait=1") as ledger:
        held = granted(ledger, new_claim(lease=MOMENT))
        done = granted(ledger, new_claim())
        assert ledger.complete(done, DONE)
        pair.fail_over()
        assert entry_of(ledger, done).state is State.COMPLETED
        assert wait_until(lambda: entry_of(ledger, held).lease_left < 0)
        with pytest.raises(LedgerUnavailable, match="0 of 1 replicas"):
            ledger.claim(new_claim())
    with opened(pair.watcher.url) as ledger:
        claim = next_attempt(new_claim(digest=held.digest), fingerprint=b"")
        taken = granted(ledger, claim)
        assert taken.fence > held.fence
        assert not ledger.complete(held, DONE)


def test_what_had_not_reached_the_replica_is_forgotten_and_runs_again(pair: Pair) -> None:
    """This is what a lost Redis costs: the effect of a finished entry takes place once more, under a larger fence."""
    with opened(pair.watcher.url) as ledger:
        pair.cut()
        claim = new_claim()
        first = granted(ledger, claim)
        assert ledger.complete(first, DONE)
        pair.fail_over()
        again = granted(ledger, next_attempt(claim))
        assert again.fence > first.fence
        assert not ledger.complete(first, DONE)


def test_with_wait_a_claim_that_may_be_forgotten_is_not_one(pair: Pair) -> None:
    """Nobody runs on the strength of it; asked again when the replica answers, it is the same claim."""
    with opened(f"{pair.watcher.url}?wait=1&wait_ms=200") as ledger:
        claim = new_claim()
        pair.replica.pause()
        with pytest.raises(LedgerUnavailable, match="0 of 1 replicas have the last write"):
            ledger.claim(claim)
        pair.replica.resume()
        assert wait_until(lambda: _is_granted(ledger, claim))
        assert entry_of(ledger, claim).attempts == 1


def test_after_flushall_everything_is_forgotten_and_old_holders_are_fenced(pair: Pair) -> None:
    with opened(pair.master.url) as ledger:
        claim = new_claim()
        old = granted(ledger, claim)
        with redis.Redis(port=pair.master.port) as client:
            client.flushall()
        assert not ledger.complete(old, DONE)
        assert ledger.renew([renewal(old)]) == frozenset()
        new = granted(ledger, next_attempt(claim))
        assert new.fence > old.fence
        assert not ledger.release(old, retries=0, reset=True, keep=None)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[TwoNodes]:
    reaper = Reaper()
    cluster = TwoNodes(tmp_path, reaper)
    yield cluster
    cluster.close()
    reaper.close()


def test_a_cluster_node_that_is_away_is_a_ledger_that_cannot_be_asked(cluster: TwoNodes) -> None:
    with opened(cluster.url) as ledger:
        claims = [new_claim() for _ in range(8)]
        for claim in claims:
            granted(ledger, claim)
        cluster.nodes[1].kill()
        assert not all(_answers(ledger, claim.digest) for claim in claims)
        cluster.nodes[1].start()
        assert wait_until(lambda: all(_answers(ledger, claim.digest) for claim in claims), seconds=60)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("redis+sentinel://me:secret@one,two:26380/shop/3?wait=1", "redis+sentinel://one:26379,two:26380/shop/3"),
        ("rediss+sentinel://[::1]:26380/shop", "rediss+sentinel://[::1]:26380/shop/0"),
        ("valkey+cluster://:secret@one:7000,two", "redis+cluster://one:7000,two:6379"),
    ],
)
def test_a_url_is_read_without_connecting_and_told_without_its_password(url: str, name: str) -> None:
    with opened(url) as ledger:
        assert ledger.name == name


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://one:secret@/shop",
        "redis+sentinel://one",
        "redis+sentinel://one/shop/secret",
        "redis+cluster://one/3",
        "redis+cluster://one?wait=1",
        "redis://one?wait=secret",
        "redis://one?wait=0",
    ],
)
def test_a_url_that_cannot_be_meant_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(SettingsInvalid) as caught:
        RedisLedger.open(url)
    assert "secret" not in str(caught.value)


def _is_granted(ledger: RedisLedger, claim: Claim) -> bool:
    try:
        return isinstance(ledger.claim(claim), Granted)
    except LedgerUnavailable:
        return False


def _answers(ledger: RedisLedger, digest: bytes) -> bool:
    try:
        return ledger.read(digest) is not None
    except LedgerUnavailable:
        return False
