"""Whether a claim is granted, compared with `domain.claims.admit` in each state that an entry can have.

The domain is the oracle: an entry is read, `admit` is asked what should happen, and the store is asked to do it.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product

import pytest

from effectonce.domain.claims import Claim, Entry, Granted, Refused, State, admit, judge
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.scene import (
    DONE,
    HOUR,
    Suite,
    entry_of,
    granted,
    new_claim,
    next_attempt,
    timeless,
)

OTHERS = b"other arguments"
RECORDED = {"with a fingerprint": b"these arguments", "without a fingerprint": b""}

Bring = Callable[[LedgerStore, Claim, Granted], object]

STANDS: dict[str, Bring] = {
    "claimed, its lease ended": lambda *_: None,
    "claimed": lambda store, claim, held: granted(store, next_attempt(claim, reenter=held.fence)),
    "completed": lambda store, _, held: store.complete(held, DONE),
    "failed": lambda store, _, held: store.complete(held, replace(DONE, state=State.FAILED)),
    "released": lambda store, _, held: store.release(held, retries=1, reset=False, keep=HOUR),
    "unknown": lambda store, _, held: store.mark_unknown(held.digest, held.attempt),
    "poisoned": lambda store, _, held: store.poison(entry_of(store, held), b"message"),
}
"""How a holder whose lease has ended is brought to where the entry shall stand."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A claim as seen from the entry it meets: whose, about what, how patient, and which fence it brings."""

    own: bool
    arguments: str
    most: int
    fence: str
    recurs: bool

    def at(self, entry: Entry) -> Claim:
        """The claim of this kind."""
        return new_claim(
            digest=entry.digest,
            attempt=entry.attempt if self.own else secrets.token_bytes(8),
            identity=entry.identity if self.own else secrets.token_bytes(16),
            fingerprint={"same": entry.fingerprint, "other": OTHERS, "not taken": b""}[self.arguments],
            max_takeovers=self.most,
            reenter={"none": None, "its": entry.fence, "an older": entry.fence - 1}[self.fence],
            recurs=self.recurs,
        )


KINDS = [
    Kind(*parts)
    for parts in product(
        (True, False), ("same", "other", "not taken"), (1, 2, 3), ("none", "its", "an older"), (True, False)
    )
]


class Admission(Suite):
    """Rules about which claim is granted."""

    @pytest.mark.parametrize("deaths", [0, 1])
    @pytest.mark.parametrize("recorded", RECORDED.values(), ids=RECORDED)
    @pytest.mark.parametrize("bring", STANDS.values(), ids=STANDS)
    def test_a_claim_is_granted_when_the_domain_says_so(
        self, store: LedgerStore, bring: Bring, recorded: bytes, deaths: int
    ) -> None:
        entry: Entry | None = None
        for kind in KINDS:
            if entry is None:
                claim = new_claim(fingerprint=recorded)
                held = self.with_deaths(store, claim, deaths)
                bring(store, claim, held)
                entry = entry_of(store, claim)
            if isinstance(_agreed(store, entry, kind.at(entry)), Granted):
                entry = None


def _agreed(store: LedgerStore, entry: Entry, claim: Claim) -> Granted | Refused:
    expected = admit(entry, claim, 0)
    answer = store.claim(claim)
    if isinstance(answer, Refused):
        assert timeless(answer.entry) == timeless(entry)
        assert expected == Refused(entry=entry)
        assert type(judge(answer, claim)) is type(judge(Refused(entry=entry), claim))
        return answer
    assert isinstance(expected, Granted)
    assert answer == replace(expected, fence=answer.fence)
    assert answer.fence == entry.fence if expected.fence == entry.fence else answer.fence > entry.fence
    after = entry_of(store, claim)
    assert (after.state, after.attempt, after.fence) == (State.CLAIMED, claim.attempt, answer.fence)
    assert (after.deaths, after.attempts) == (answer.deaths, answer.attempts)
    return answer
