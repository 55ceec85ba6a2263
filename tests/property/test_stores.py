"""Every store does what thirty lines say, whatever is asked in whatever order.

A machine drives memory, Redis, SQLite, PostgreSQL and MariaDB side by side: claims, late and stale settlements,
renewals, rescues, marks. Time is made plain: a lease is an hour, or has ended as soon as it was granted.
"""

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule, run_state_machine_as_test

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State
from effectonce.domain.following import Following
from effectonce.ports import LedgerStore, Renewal
from effectonce.stores.memory import MemoryLedger
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.stores.sql.ledger import SqlLedger

HOUR: Final = 3600.0
EFFECTS: Final = 4
ENDED: Final = {State.COMPLETED, State.FAILED}
OPEN: Final = {State.CLAIMED, State.RELEASED}

Held = Mapping[str, Granted]
"""A grant, as each store gave it."""


@dataclass
class Oracle:
    """What a store must know of one effect. Its fences count grants: only their order means something."""

    state: State | None = None
    fence: int = 0
    running: bool = False
    deaths: int = 0
    attempts: int = 0
    retries: int = 0
    claim_made: Claim | None = None
    outcome: Outcome | None = None
    continued: bool = False
    messages: list[bytes] = field(default_factory=list)
    follower: bytes | None = None

    def claim(self, claim: Claim, brought: int | None) -> bool:
        """Tell whether it is granted; *brought* is the fence of a retry."""
        old, claimed = self.claim_made, self.state is State.CLAIMED
        if claimed and old and old.attempt == claim.attempt and self.running:
            return True
        same = not (old and old.fingerprint and claim.fingerprint) or old.fingerprint == claim.fingerprint
        reenters = claimed and brought == self.fence
        dead = claimed and not self.running and not reenters
        if dead and not (same and self.deaths + 1 < claim.max_takeovers):
            return False
        others = self.state in ENDED and claim.recurs and old is not None and old.identity != claim.identity
        if not (self.state is None or reenters or dead or others or self.state is State.RELEASED):
            return False
        self.deaths = 0 if others else self.deaths
        if self.state is State.RELEASED and self.deaths >= claim.max_takeovers:
            return False
        self.deaths, self.attempts, self.fence = self.deaths + dead, self.attempts + 1, self.fence + 1
        self.state, self.running, self.retries = State.CLAIMED, claim.lease > 0, claim.retries
        self.claim_made, self.outcome, self.continued, self.follower = claim, None, False, None
        return True

    def follow(self, attempt: bytes, fence: int, identity: bytes) -> Following:
        if not self.holds(attempt, fence) or self.state is not State.CLAIMED:
            return Following.MOVED
        self.follower = self.follower or identity
        return Following.NEXT if self.follower == identity else Following.ANOTHER

    def holds(self, attempt: bytes, fence: int) -> bool:
        """Tell whether nobody has had it since."""
        return self.claim_made is not None and (self.claim_made.attempt, self.fence) == (attempt, fence)

    def complete(self, attempt: bytes, fence: int, outcome: Outcome) -> bool:
        if self.holds(attempt, fence) and self.state is State.CLAIMED:
            self.state, self.outcome, self.continued = outcome.state, outcome, outcome.continued
        return self.holds(attempt, fence) and self.state in ENDED

    def release(self, attempt: bytes, fence: int, *, retries: int, reset: bool) -> bool:
        if not self.holds(attempt, fence) or self.state not in OPEN:
            return False
        self.state, self.retries, self.deaths = State.RELEASED, retries, 0 if reset else self.deaths
        return True

    def renew(self, attempt: bytes, fence: int) -> bool:
        return self.holds(attempt, fence) and self.state is State.CLAIMED and self.running

    def poison(self, attempt: bytes, fence: int, *, seen: State, message: bytes) -> bool:
        unmoved = self.state is seen and seen in OPEN
        if not self.holds(attempt, fence) or not (unmoved or self.state is State.POISONED):
            return False
        self.state, self.messages = State.POISONED, list(dict.fromkeys([*self.messages, message]))
        return True

    def rescue(self) -> bool:
        if self.state is not State.CLAIMED or self.running:
            return False
        self.state, self.deaths = State.RELEASED, self.deaths + 1
        return True


@dataclass(frozen=True)
class Grant:
    """A grant that was given at some time; it may be stale by now."""

    effect: int
    claim: Claim
    fence: int
    held: Held


@dataclass(frozen=True)
class Sight:
    """An entry as it was read at some time."""

    effect: int
    attempt: bytes
    fence: int
    state: State
    entries: Mapping[str, Entry]


BOUNDED: Final = settings(stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])

effects = st.integers(0, EFFECTS - 1)
outcomes = st.builds(
    Outcome,
    state=st.sampled_from(sorted(ENDED)),
    result=st.sampled_from([None, b"", b"result"]),
    handed_over=st.booleans(),
    continued=st.booleans(),
    keep=st.just(HOUR),
)


class Stores(RuleBasedStateMachine):
    """The same questions to every store and to the oracle."""

    grants: "Bundle[Grant]" = Bundle("grants")
    sights: "Bundle[Sight]" = Bundle("sights")

    stores: Mapping[str, LedgerStore]

    def __init__(self) -> None:
        super().__init__()
        self.digests = [secrets.token_bytes(16) for _ in range(EFFECTS)]
        self.oracles = [Oracle() for _ in range(EFFECTS)]
        self.highest = {name: [0] * EFFECTS for name in self.stores}

    @initialize(target=grants, effect=effects)
    def begin(self, effect: int) -> Any:
        return self._claim(effect, self._new_claim(effect), None)

    @rule(
        target=grants,
        effect=effects,
        running=st.booleans(),
        arguments=st.sampled_from([b"these", b"others", b""]),
        most=st.integers(1, 4),
        retries=st.integers(0, 2),
        recurs=st.booleans(),
    )
    def claim(self, effect: int, *, running: bool, arguments: bytes, most: int, retries: int, recurs: bool) -> Any:
        claim = replace(
            self._new_claim(effect),
            lease=HOUR if running else 0.0,
            fingerprint=arguments,
            max_takeovers=most,
            retries=retries,
            recurs=recurs,
        )
        return self._claim(effect, claim, None)

    @rule(target=grants, grant=grants, running=st.booleans())
    def re_enter(self, grant: Grant, *, running: bool) -> Any:
        claim = replace(self._new_claim(grant.effect), lease=HOUR if running else 0.0, retries=1)
        return self._claim(grant.effect, claim, grant)

    @rule(target=grants, grant=grants)
    def ask_again(self, grant: Grant) -> Any:
        return self._claim(grant.effect, grant.claim, None)

    @rule(grant=grants, outcome=outcomes)
    def complete(self, grant: Grant, outcome: Outcome) -> None:
        expected = self.oracles[grant.effect].complete(grant.claim.attempt, grant.fence, outcome)
        for name, store in self.stores.items():
            assert store.complete(grant.held[name], outcome) is expected, name
        self._agree(grant.effect)

    @rule(grant=grants, retries=st.integers(0, 2), reset=st.booleans())
    def release(self, grant: Grant, retries: int, *, reset: bool) -> None:
        oracle = self.oracles[grant.effect]
        expected = oracle.release(grant.claim.attempt, grant.fence, retries=retries, reset=reset)
        for name, store in self.stores.items():
            assert store.release(grant.held[name], retries=retries, reset=reset, keep=HOUR) is expected, name
        self._agree(grant.effect)

    @rule(batch=st.lists(grants, max_size=5, unique_by=lambda grant: (grant.claim.attempt, grant.fence)))
    def renew(self, batch: list[Grant]) -> None:
        expected = {
            grant.claim.attempt for grant in batch if self.oracles[grant.effect].renew(grant.claim.attempt, grant.fence)
        }
        for name, store in self.stores.items():
            assert store.renew([_renewal(grant.held[name]) for grant in batch]) == expected, name

    @rule(target=sights, effect=effects)
    def look(self, effect: int) -> Any:
        oracle, made = self.oracles[effect], self.oracles[effect].claim_made
        if oracle.state is None or made is None:
            return multiple()
        entries = {name: self._entry(store, effect) for name, store in self.stores.items()}
        return Sight(effect, made.attempt, oracle.fence, oracle.state, entries)

    @rule(sight=sights, identity=st.sampled_from([b"m" * 16, b"n" * 16]))
    def follow(self, sight: Sight, identity: bytes) -> None:
        expected = self.oracles[sight.effect].follow(sight.attempt, sight.fence, identity)
        for name, store in self.stores.items():
            assert store.follow(sight.entries[name], identity) is expected, name
        self._agree(sight.effect)

    @rule(sight=sights, message=st.sampled_from([b"one", b"two"]))
    def poison(self, sight: Sight, message: bytes) -> None:
        oracle = self.oracles[sight.effect]
        expected = oracle.poison(sight.attempt, sight.fence, seen=sight.state, message=message)
        for name, store in self.stores.items():
            assert store.poison(sight.entries[name], message) is expected, name
        self._agree(sight.effect)

    @rule(grant=grants)
    def mark_continued(self, grant: Grant) -> None:
        oracle = self.oracles[grant.effect]
        its_own = oracle.claim_made is not None and oracle.claim_made.attempt == grant.claim.attempt
        oracle.continued = oracle.continued or (its_own and oracle.state in ENDED)
        for store in self.stores.values():
            store.mark_continued(grant.claim.digest, grant.claim.attempt)
        self._agree(grant.effect)

    @rule(grant=grants, message=st.sampled_from([b"one", b"two"]))
    def lose_sight(self, grant: Grant, message: bytes) -> None:
        oracle = self.oracles[grant.effect]
        for store in self.stores.values():
            store.mark_unknown(grant.claim.digest, grant.claim.attempt)
        if oracle.claim_made is not None and oracle.claim_made.attempt == grant.claim.attempt:
            oracle.state, oracle.messages = State.UNKNOWN, list(dict.fromkeys([*oracle.messages, message]))
            for store in self.stores.values():
                store.hold(grant.claim.digest, message)
        self._agree(grant.effect)

    @rule()
    def rescue(self) -> None:
        expected = {digest for digest, oracle in zip(self.digests, self.oracles, strict=True) if oracle.rescue()}
        for name, store in self.stores.items():
            rescued = {entry.digest for entry in store.rescue(1000)}
            assert rescued & set(self.digests) == expected, name
        for effect in range(EFFECTS):
            self._agree(effect)

    def _new_claim(self, effect: int) -> Claim:
        return Claim(
            digest=self.digests[effect],
            key=f"effect:{effect}",
            attempt=secrets.token_bytes(8),
            identity=secrets.token_bytes(16),
            task_id=secrets.token_hex(8),
            fingerprint=b"these",
            lease=HOUR,
            max_takeovers=3,
            keep=HOUR,
        )

    def _claim(self, effect: int, claim: Claim, brings: Grant | None) -> Any:
        """Ask all for a claim; a grant goes into the bundle."""
        expected = self.oracles[effect].claim(claim, brings.fence if brings else None)
        held: dict[str, Granted] = {}
        for name, store in self.stores.items():
            answer = store.claim(replace(claim, reenter=brings.held[name].fence if brings else None))
            assert isinstance(answer, Granted) is expected, name
            if isinstance(answer, Granted):
                held[name] = answer
                assert answer.fence >= self.highest[name][effect], name
                self.highest[name][effect] = answer.fence
        self._agree(effect)
        return Grant(effect, claim, self.oracles[effect].fence, held) if expected else multiple()

    def _agree(self, effect: int) -> None:
        """Compare what every store says of an effect with what the oracle says."""
        oracle = self.oracles[effect]
        for name, store in self.stores.items():
            if oracle.state is None:
                assert store.read(self.digests[effect]) is None, name
            else:
                assert _told(self._entry(store, effect)) == _expected(oracle), name
                assert list(store.held(self.digests[effect])) == oracle.messages, name

    def _entry(self, store: LedgerStore, effect: int) -> Entry:
        while True:
            entry = store.read(self.digests[effect])
            assert entry is not None
            if entry.lease_left != 0 or entry.state is not State.CLAIMED:  # else the clock has not moved yet
                return entry


def _renewal(held: Granted) -> Renewal:
    return Renewal(digest=held.digest, attempt=held.attempt, fence=held.fence, lease=HOUR)


def _told(entry: Entry) -> dict[str, object]:
    ended = entry.state in ENDED
    return {
        "state": entry.state,
        "running": entry.lease_left > 0 if entry.state is State.CLAIMED else None,
        "counts": (entry.deaths, entry.attempts, entry.retries),
        "claim": (entry.attempt, entry.identity, entry.task_id, entry.fingerprint),
        "outcome": (entry.result, entry.result_kept, entry.handed_over, entry.continued) if ended else None,
    }


def _expected(oracle: Oracle) -> dict[str, object]:
    made, outcome = oracle.claim_made, oracle.outcome
    assert made is not None
    ended = outcome is not None and oracle.state in ENDED
    return {
        "state": oracle.state,
        "running": oracle.running if oracle.state is State.CLAIMED else None,
        "counts": (oracle.deaths, oracle.attempts, oracle.retries),
        "claim": (made.attempt, made.identity, made.task_id, made.fingerprint),
        "outcome": (outcome.result, outcome.kept, outcome.handed_over, oracle.continued) if ended and outcome else None,
    }


@pytest.fixture
def stores(
    redis_url: str, postgresql_url: str, mariadb_url: str, tmp_path: Path
) -> Iterator[Mapping[str, LedgerStore]]:
    opened: dict[str, LedgerStore] = {
        "memory": MemoryLedger(),
        "Redis": RedisLedger.open(redis_url),
        "SQLite": SqlLedger.open(f"sqlite:///{tmp_path / 'effects.sqlite'}"),
        "PostgreSQL": SqlLedger.open(postgresql_url),
        "MariaDB": SqlLedger.open(mariadb_url),
    }
    for store in opened.values():
        store.create_schema()
    yield opened
    for store in opened.values():
        store.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("examples", [25, pytest.param(400, marks=pytest.mark.soak)])
def test_all_stores_do_what_thirty_lines_say(stores: Mapping[str, LedgerStore], examples: int) -> None:
    """Under the profile that Hypothesis takes in CI, the same runs each time."""
    over_these = type("StoresOfThisTest", (Stores,), {"stores": stores})
    run_state_machine_as_test(over_these, settings=settings(BOUNDED, max_examples=examples))
