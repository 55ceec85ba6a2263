"""Where entries lie, and how long."""

import time

import pytest
import redis
from redis.crc import key_slot

from effectonce.domain.claims import Outcome, State
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance.scene import DONE, HOUR, entry_of, granted, new_claim, next_attempt, renewal


def ttl(server: redis.Redis, ledger: RedisLedger, digest: bytes) -> float | None:
    """Seconds that an entry has to live; None for ever."""
    left = server.pttl(ledger._keys.entry(digest))
    assert left != -2, "there is no such entry"
    return None if left == -1 else left / 1000


def waiting(server: redis.Redis, ledger: RedisLedger, digest: bytes) -> float | None:
    """The instant from which the rescuer may free an entry."""
    score = server.zscore(ledger._keys.claims(digest), digest.hex())
    return None if score is None else score / 1_000_000


def test_all_keys_of_an_effect_are_in_one_slot(ledger: RedisLedger) -> None:
    keys, digest = ledger._keys, bytes(range(16))
    names = (keys.entry(digest), keys.messages(digest), keys.claims(digest))
    assert len({key_slot(name.encode()) for name in names}) == 1


def test_effects_are_spread_over_the_slots(ledger: RedisLedger) -> None:
    slots = {key_slot(ledger._keys.claims(bytes([first])).encode()) for first in range(256)}
    assert len(slots) > 200


def test_a_claim_has_no_time_to_live_and_stands_in_the_index(ledger: RedisLedger, server: redis.Redis) -> None:
    held = granted(ledger, new_claim(lease=HOUR))
    assert ttl(server, ledger, held.digest) is None
    assert waiting(server, ledger, held.digest) == pytest.approx(time.time() + 2 * HOUR, abs=60)
    ledger.renew([renewal(held, lease=2 * HOUR)])
    assert waiting(server, ledger, held.digest) == pytest.approx(time.time() + 4 * HOUR, abs=60)


@pytest.mark.parametrize("keep", [60.0, None])
def test_an_outcome_lives_as_long_as_it_is_kept(ledger: RedisLedger, server: redis.Redis, keep: float | None) -> None:
    held = granted(ledger, new_claim())
    ledger.complete(held, Outcome(state=State.COMPLETED, keep=keep))
    assert ttl(server, ledger, held.digest) == (keep and pytest.approx(keep, abs=30))
    assert waiting(server, ledger, held.digest) is None


def test_a_tombstone_lives_as_long_as_it_is_kept_and_a_new_claim_for_ever(
    ledger: RedisLedger, server: redis.Redis
) -> None:
    claim = new_claim()
    ledger.release(granted(ledger, claim), retries=0, reset=True, keep=60.0)
    assert ttl(server, ledger, claim.digest) == pytest.approx(60.0, abs=30)
    assert waiting(server, ledger, claim.digest) is None
    granted(ledger, next_attempt(claim))
    assert ttl(server, ledger, claim.digest) is None


@pytest.mark.parametrize("keep", [60.0, None])
def test_a_tombstone_of_the_rescuer_lives_as_long_as_the_claim_asked(
    ledger: RedisLedger, server: redis.Redis, keep: float | None
) -> None:
    held = granted(ledger, new_claim(lease=0.0, keep=keep))
    assert [entry.digest for entry in ledger.rescue(10)] == [held.digest]
    assert ttl(server, ledger, held.digest) == (keep and pytest.approx(keep, abs=30))
    assert waiting(server, ledger, held.digest) is None


@pytest.mark.parametrize("way", ["poisoned", "unknown"])
def test_what_waits_for_a_person_waits_for_ever(ledger: RedisLedger, server: redis.Redis, way: str) -> None:
    held = granted(ledger, new_claim(lease=0.0))
    ledger.release(held, retries=0, reset=False, keep=60.0)
    if way == "poisoned":
        assert ledger.poison(entry_of(ledger, held), b"message")
    else:
        ledger.mark_unknown(held.digest, held.attempt)
    assert ttl(server, ledger, held.digest) is None
    assert waiting(server, ledger, held.digest) is None


def test_an_entry_is_forgotten_after_its_time(ledger: RedisLedger) -> None:
    held = granted(ledger, new_claim())
    ledger.complete(held, Outcome(state=State.COMPLETED, keep=0.0))
    deadline = time.monotonic() + 10
    while ledger.read(held.digest) is not None:
        assert time.monotonic() < deadline


def test_a_claim_that_vanished_leaves_the_index(ledger: RedisLedger, server: redis.Redis) -> None:
    """An eviction, or somebody's hand: the rescuer neither fails nor makes an entry of nothing."""
    held = granted(ledger, new_claim(lease=0.0))
    server.delete(ledger._keys.entry(held.digest))
    assert list(ledger.rescue(10)) == []
    assert waiting(server, ledger, held.digest) is None
    assert server.dbsize() == 0


def test_a_ping_leaves_nothing(ledger: RedisLedger, server: redis.Redis) -> None:
    ledger.ping()
    assert server.dbsize() == 0


def test_fences_are_whole_numbers_that_lua_keeps(ledger: RedisLedger, server: redis.Redis) -> None:
    held = granted(ledger, new_claim())
    stored = server.hget(ledger._keys.entry(held.digest), "fence")
    assert stored == str(held.fence).encode()
    assert len(stored) == 16
    assert held.fence < 2**53


@pytest.fixture
def crowded(ledger: RedisLedger) -> int:
    """More entries than are looked at in one batch."""
    for number in range(1203):
        granted(ledger, new_claim(key=f"order:{number}"))
    return 1203


def test_listing_and_counting_go_over_many_batches(ledger: RedisLedger, crowded: int) -> None:
    assert ledger.counts()[State.CLAIMED] == crowded
    assert len(ledger.entries(state=None, limit=crowded + 1)) == crowded
    assert [entry.key for entry in ledger.find("order:777")] == ["order:777"]
    assert len(ledger.entries(state=State.CLAIMED, limit=700)) == 700


def test_keys_of_others_are_not_taken_for_entries(ledger: RedisLedger, server: redis.Redis) -> None:
    held = granted(ledger, new_claim())
    server.set(f"other{ledger._keys.entry(held.digest)}", "x")
    server.set(f"{ledger._keys.entry(held.digest)}:mine", "x")
    ledger.mark_unknown(held.digest, held.attempt)
    ledger.hold(held.digest, b"message")
    assert [entry.digest for entry in ledger.entries(state=None, limit=10)] == [held.digest]


def test_an_entry_takes_less_than_half_a_kilobyte(ledger: RedisLedger, server: redis.Redis) -> None:
    def memory() -> int:
        return int(server.info("memory")["used_memory"])

    granted(ledger, new_claim())
    before = memory()
    for number in range(2000):
        ledger.complete(granted(ledger, new_claim(key=f"charge:{number}")), DONE)
    assert (memory() - before) / 2000 < 512
