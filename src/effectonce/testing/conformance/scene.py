"""What the rules are played with: effects, attempts at them, and waiting for a store's clock."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

import pytest

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.ports import LedgerStore, Renewal
from effectonce.testing.conformance.clocks import StoreClock

HOUR: Final = 3600.0
"""A lease that does not end while a test runs."""

MOMENT: Final = 0.001
"""A lease that has ended as soon as one looks."""

Answer = TypeVar("Answer")

DONE: Final = Outcome(state=State.COMPLETED, result=b"done", keep=HOUR)


def new_claim(**changes: Any) -> Claim:
    """A first attempt at an effect that nobody has heard of."""
    claim = Claim(
        digest=secrets.token_bytes(16),
        key=f"charge:{secrets.token_hex(6)}",
        attempt=secrets.token_bytes(8),
        identity=secrets.token_bytes(16),
        task_id=secrets.token_hex(16),
        fingerprint=secrets.token_bytes(16),
        lease=HOUR,
        max_takeovers=3,
        keep=HOUR,
    )
    return replace(claim, **changes)


def next_attempt(claim: Claim, **changes: Any) -> Claim:
    """Another attempt at the same effect, because of the same message unless *changes* say otherwise."""
    return replace(claim, attempt=secrets.token_bytes(8), **changes)


def granted(store: LedgerStore, claim: Claim) -> Granted:
    """Claim, and insist that it is granted."""
    answer = store.claim(claim)
    assert isinstance(answer, Granted)
    return answer


def entry_of(store: LedgerStore, claim: Claim | Granted) -> Entry:
    """Read an entry that must be there."""
    entry = store.read(claim.digest)
    assert entry is not None
    return entry


def renewal(held: Granted, *, lease: float = HOUR) -> Renewal:
    """The renewal of a grant."""
    return Renewal(digest=held.digest, attempt=held.attempt, fence=held.fence, lease=lease)


def timeless(entry: Entry | None) -> Entry | None:
    """An entry without what moves by itself."""
    return None if entry is None else replace(entry, lease_left=0.0)


class Suite(StoreClock):
    """What a store's test class gives to the rules."""

    @pytest.fixture
    def store(self) -> LedgerStore:
        """The store under test, its schema created; give it in the subclass."""
        raise NotImplementedError

    def set_fence(self, store: LedgerStore, digest: bytes, fence: int) -> None:
        """Write *fence* into an entry, behind the store's back; give it in the subclass."""
        raise NotImplementedError

    def in_time(self, trial: Callable[[float], Answer | None]) -> Answer:
        """Try what must be done within a span of time; where the machine was too slow (None), try with a longer one."""
        for span in (0.05, 0.4, 3.2, 12.8):
            answer = trial(span)
            if answer is not None:
                return answer
        message = "a few questions to the store took longer than ten seconds"
        raise AssertionError(message)

    def until_ended(self, store: LedgerStore, held: Granted, *, ago: float = 0.0) -> None:
        """Wait until a lease has ended more than *ago* seconds ago."""
        self.until(lambda: entry_of(store, held).lease_left < -ago)

    def abandoned(self, store: LedgerStore, claim: Claim) -> Granted:
        """A claim whose lease has ended, and whose holder has not been heard of."""
        held = granted(store, replace(claim, lease=MOMENT))
        self.until_ended(store, held)
        return held

    def renewed_after_its_first_lease(self, store: LedgerStore) -> Granted:
        """A claim that was renewed for an hour, twice as long ago as its first lease was long."""

        def trial(lease: float) -> Granted | None:
            held = granted(store, new_claim(lease=lease))
            renewed = store.renew([renewal(held)]) == {held.attempt}
            assert renewed or entry_of(store, held).lease_left <= 0
            self.let_pass(store, 2 * lease)
            return held if renewed else None

        return self.in_time(trial)

    def with_deaths(self, store: LedgerStore, claim: Claim, deaths: int) -> Granted:
        """Have *deaths* holders of an effect die; returns the one after them, whose lease has ended too."""
        held = self.abandoned(store, claim)
        for _ in range(deaths):
            held = self.abandoned(store, next_attempt(claim, max_takeovers=1000))
        return held

    def let_pass(self, store: LedgerStore, seconds: float) -> None:
        """Wait until the store's clock has gone on by *seconds*."""
        clock = granted(store, new_claim(lease=seconds))
        self.until_ended(store, clock)
