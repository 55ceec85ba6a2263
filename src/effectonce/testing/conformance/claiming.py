"""What a grant writes, and how fences grow."""

import time
from dataclasses import replace

import pytest

from effectonce.domain.claims import Refused, State
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.scene import (
    DONE,
    HOUR,
    MOMENT,
    Suite,
    entry_of,
    granted,
    new_claim,
    next_attempt,
    timeless,
)

FAR_FENCE = 2**52
"""A fence that lies some forty years ahead of the clock."""

ODD_KEYS = {
    "empty": "",
    "spaces": "  a key\twith\nblanks  ",
    "accents and pictures": "Ärger:žluť:支払い:💶\u202e",
    "like a pattern": "charge:[*]?\\%_'\"{}--;",
    "huge": "x" * 20_000,
}
ODD_BYTES = {"zeros": b"\0" * 16, "ones": b"\xff" * 16, "line ends": b"\r\n\0\t*$-1\r\n+OK\r\n"}


class Claiming(Suite):
    """Rules about one claim after the other."""

    def test_a_first_claim_is_granted_and_its_facts_are_written(self, store: LedgerStore) -> None:
        claim = new_claim(retries=2)
        held = granted(store, claim)
        assert (held.digest, held.attempt) == (claim.digest, claim.attempt)
        assert (held.takeover, held.deaths, held.attempts) == (False, 0, 1)
        entry = entry_of(store, claim)
        assert entry.state is State.CLAIMED
        assert (entry.fence, entry.attempt) == (held.fence, claim.attempt)
        assert (entry.key, entry.task_id) == (claim.key, claim.task_id)
        assert (entry.identity, entry.fingerprint) == (claim.identity, claim.fingerprint)
        assert (entry.deaths, entry.attempts, entry.retries) == (0, 1, 2)
        assert (entry.result, entry.continued, entry.handed_over) == (None, False, False)

    def test_a_claim_is_read_by_nobody_before_it_is_made(self, store: LedgerStore) -> None:
        assert store.read(new_claim().digest) is None

    def test_an_entry_says_how_long_its_lease_still_has(self, store: LedgerStore) -> None:
        held = granted(store, new_claim(lease=HOUR))
        assert HOUR - 60 < entry_of(store, held).lease_left <= HOUR

    def test_a_lease_ends_by_itself(self, store: LedgerStore) -> None:
        held = granted(store, new_claim(lease=MOMENT))
        self.until_ended(store, held)
        assert entry_of(store, held).state is State.CLAIMED

    def test_a_refused_claim_changes_nothing(self, store: LedgerStore) -> None:
        """A60: the loser frees nothing."""
        claim = new_claim()
        granted(store, claim)
        before = entry_of(store, claim)
        answer = store.claim(next_attempt(claim, task_id="another", fingerprint=b"another", lease=1.0))
        assert isinstance(answer, Refused)
        assert timeless(answer.entry) == timeless(before) == timeless(entry_of(store, claim))

    def test_a_claim_does_not_wait_for_the_holder(self, store: LedgerStore) -> None:
        claim = new_claim()
        granted(store, claim)
        started = time.monotonic()
        assert isinstance(store.claim(next_attempt(claim)), Refused)
        assert time.monotonic() - started < 1.0

    def test_each_grant_has_a_larger_fence(self, store: LedgerStore) -> None:
        claim = new_claim()
        first = self.abandoned(store, claim)
        second = granted(store, claim := next_attempt(claim))
        third = granted(store, claim := next_attempt(claim, reenter=second.fence))
        store.release(third, retries=0, reset=False, keep=HOUR)
        fourth = granted(store, next_attempt(claim, reenter=None))
        assert first.fence < second.fence < third.fence < fourth.fence
        assert [held.attempts for held in (first, second, third, fourth)] == [1, 2, 3, 4]

    @pytest.mark.parametrize("way", ["takeover", "re-entry", "after a release"])
    def test_a_fence_grows_also_past_one_from_the_future(self, store: LedgerStore, way: str) -> None:
        """A clock that was set back, or a backup from another machine, must not bring fences back (rule 1)."""
        claim = new_claim()
        held = self.abandoned(store, claim)
        self.set_fence(store, claim.digest, FAR_FENCE)
        if way == "after a release":
            store.release(replace(held, fence=FAR_FENCE), retries=0, reset=False, keep=HOUR)
        reenter = FAR_FENCE if way == "re-entry" else None
        following = granted(store, next_attempt(claim, reenter=reenter))
        assert following.fence == FAR_FENCE + 1
        assert entry_of(store, claim).fence == FAR_FENCE + 1

    def test_a_fence_is_the_clock_when_the_entry_is_new(self, store: LedgerStore) -> None:
        """So an entry that was lost and made again has a larger fence than the lost one (hole H8)."""
        held = granted(store, new_claim())
        assert held.fence / 1_000_000 == pytest.approx(entry_of(store, held).since, abs=60)

    def test_a_retry_re_enters_by_the_fence_that_it_brings(self, store: LedgerStore) -> None:
        claim = new_claim()
        held = granted(store, claim)
        retry = next_attempt(claim, reenter=held.fence, retries=1)
        again = granted(store, retry)
        assert (again.takeover, again.deaths) == (False, 0)
        assert (entry_of(store, claim).attempt, entry_of(store, claim).retries) == (retry.attempt, 1)

    def test_a_retry_does_not_re_enter_when_another_has_held_it_since(self, store: LedgerStore) -> None:
        """Hole H6: the sleeper's retry would be a second holder."""
        claim = new_claim()
        slept = self.abandoned(store, claim)
        granted(store, next_attempt(claim))
        assert isinstance(store.claim(next_attempt(claim, reenter=slept.fence)), Refused)

    def test_asking_again_gives_the_same_grant(self, store: LedgerStore) -> None:
        """The answer may be lost on the way; an attempt is not its own rival."""
        claim = new_claim()
        held = granted(store, claim)
        before = entry_of(store, claim)
        assert store.claim(claim) == held
        assert timeless(entry_of(store, claim)) == timeless(before)

    def test_asking_again_after_a_takeover_counts_no_second_death(self, store: LedgerStore) -> None:
        claim = new_claim()
        self.abandoned(store, claim)
        heir = next_attempt(claim)
        held = granted(store, heir)
        assert (held.takeover, held.deaths, held.attempts) == (True, 1, 2)
        assert store.claim(heir) == held

    def test_a_new_grant_forgets_what_the_last_attempt_left(self, store: LedgerStore) -> None:
        claim = new_claim(retries=3)
        held = granted(store, claim)
        store.mark_continued(claim.digest, claim.attempt)
        store.release(held, retries=4, reset=True, keep=HOUR)
        other = new_claim(digest=claim.digest, key=claim.key)
        granted(store, other)
        entry = entry_of(store, claim)
        assert (entry.task_id, entry.identity) == (other.task_id, other.identity)
        assert (entry.fingerprint, entry.retries, entry.continued) == (other.fingerprint, 0, False)

    def test_a_grant_outlives_the_tombstone_that_it_followed(self, store: LedgerStore) -> None:
        claim = new_claim()
        store.release(granted(store, claim), retries=0, reset=True, keep=0.05)
        held = granted(store, next_attempt(claim))
        self.let_pass(store, 0.1)
        assert entry_of(store, held).state is State.CLAIMED

    def test_a_finished_effect_is_not_claimed_again_when_its_lease_ends(self, store: LedgerStore) -> None:
        claim = new_claim(lease=MOMENT)
        held = granted(store, claim)
        store.complete(held, DONE)
        self.let_pass(store, 2 * MOMENT)
        answer = store.claim(next_attempt(claim))
        assert isinstance(answer, Refused)
        assert answer.entry is not None
        assert answer.entry.result == b"done"

    @pytest.mark.parametrize("key", ODD_KEYS.values(), ids=ODD_KEYS)
    def test_a_key_may_be_any_text(self, store: LedgerStore, key: str) -> None:
        claim = new_claim(key=key, task_id=key[:200])
        granted(store, claim)
        entry = entry_of(store, claim)
        assert (entry.key, entry.task_id) == (claim.key, claim.task_id)

    @pytest.mark.parametrize("odd", ODD_BYTES.values(), ids=ODD_BYTES)
    def test_bytes_come_back_as_they_were(self, store: LedgerStore, odd: bytes) -> None:
        claim = new_claim(attempt=odd[:8], identity=odd[:16], fingerprint=odd * 3)
        held = granted(store, claim)
        entry = entry_of(store, claim)
        assert (entry.attempt, entry.identity, entry.fingerprint) == (odd[:8], odd[:16], odd * 3)
        assert store.complete(held, replace(DONE, result=odd))
        assert entry_of(store, claim).result == odd

    @pytest.mark.parametrize("digest", [b"\0" * 16, b"\xff" * 16], ids=["lowest", "highest"])
    def test_the_outermost_digests_are_digests(self, store: LedgerStore, digest: bytes) -> None:
        claim = new_claim(digest=digest)
        held = store.claim(claim)
        if isinstance(held, Refused):  # of an earlier test at the same store
            assert entry_of(store, claim).digest == digest
            return
        assert store.renew([]) == frozenset()
        assert store.release(held, retries=0, reset=True, keep=HOUR)
