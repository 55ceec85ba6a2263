"""A leased attempt whose ledger is away when it matters; time is the test's own."""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State
from effectonce.domain.deliveries import Delivery
from effectonce.errors import LedgerUnavailable
from effectonce.runtime.keeper import Keeper
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.signals import Away
from effectonce.stores.memory import MemoryLedger

LEASE = 30.0


@dataclass
class Clock:
    """Moves only when somebody sleeps."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now

    def let_pass(self, seconds: float) -> None:
        self.now += seconds


class Doubtful(MemoryLedger):
    """A ledger whose answers to *lost* questions get lost, done or not."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.claims: list[Claim] = []
        self.lose_claim: Callable[[], None] | None = None
        self.refuse_until = 0.0
        self.time = clock

    def claim(self, claim: Claim) -> Granted | Refused:
        answer = super().claim(claim)
        self.claims.append(claim)
        if self.lose_claim is not None and len(self.claims) == 1:
            self.lose_claim()
            raise LedgerUnavailable(ledger=self.name, reason="Timeout reading from socket")
        return answer

    def complete(self, granted: Granted, outcome: Outcome) -> bool:
        if self.time.now < self.refuse_until:
            raise LedgerUnavailable(ledger=self.name, reason="it is away")
        return super().complete(granted, outcome)


@dataclass
class Scene:
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.ledger = Doubtful(self.clock)
        self.claim = Claim(
            digest=secrets.token_bytes(16),
            key="mail:1",
            attempt=secrets.token_bytes(8),
            identity=secrets.token_bytes(16),
            task_id="1",
            fingerprint=b"",
            lease=LEASE,
            max_takeovers=5,
        )
        keeper = Keeper(lambda: self.ledger, emit=lambda _: None, clock=lambda: 0.0)
        self.attempt = LeasedAttempt(self._plan(), self.ledger, keeper)

    def _plan(self) -> Plan:
        return Plan(
            claim=self.claim,
            delivery=Delivery(task="mail", task_id="1", deferrable=True),
            encode=lambda result: Encoded(payload=str(result).encode()),
            encode_failure=lambda error: str(error).encode(),
            remember=(),
            ignored=(),
            controls=(),
            replaced=lambda: False,
            handed_on=lambda: False,
            emit=lambda _: None,
            patience=0.0,
            clock=self.clock,
            sleep=self.clock.let_pass,
        )

    @property
    def entry(self) -> Entry:
        entry = self.ledger.read(self.claim.digest)
        assert entry is not None
        return entry


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    scene.attempt.close()


def test_a_claim_that_was_not_answered_is_asked_for_again_by_the_same_attempt(scene: Scene) -> None:
    scene.ledger.lose_claim = lambda: scene.clock.let_pass(5)
    assert scene.attempt.run(lambda: "mailed") == "mailed"
    assert scene.ledger.claims == [scene.claim, scene.claim]
    assert (scene.entry.state, scene.entry.attempts) == (State.COMPLETED, 1)


def test_trust_in_a_claim_that_was_asked_for_twice_counts_from_the_first_asking(scene: Scene) -> None:
    scene.ledger.lose_claim = lambda: scene.clock.let_pass(20)

    def body() -> None:
        held = scene.attempt._held
        assert held is not None
        assert held.is_trusted(1000 + LEASE - 1)
        assert not held.is_trusted(1000 + LEASE)

    scene.attempt.run(body)


def test_an_effect_that_took_place_is_not_let_go_when_its_ledger_comes_back_too_late(scene: Scene) -> None:
    """The lease is no longer trusted, nobody has taken over: the outcome is written instead of a release."""

    def body() -> str:
        scene.ledger.refuse_until = scene.clock.now + LEASE + 1
        return "mailed"

    with pytest.raises(Away):
        scene.attempt.run(body)
    scene.clock.let_pass(2)
    scene.attempt.abandoned()
    assert (scene.entry.state, scene.entry.result) == (State.COMPLETED, b"mailed")
