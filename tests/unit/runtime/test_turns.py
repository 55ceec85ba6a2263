"""How long a call waits for its turn, and which does; time is the test's own."""

import secrets
from dataclasses import dataclass, field, replace

import pytest

from effectonce.domain.claims import Busy, Claim, Granted
from effectonce.domain.deliveries import Delivery
from effectonce.runtime.keeper import Keeper
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.signals import Refusal
from effectonce.stores.memory import MemoryLedger

LEASE = 30.0
MESSAGE, CALL = (Delivery(task="sync", task_id="2", deferrable=deferrable) for deferrable in (True, False))


@dataclass
class Scene:
    """A key that somebody holds, who lets it go at *until* if that comes."""

    until: float = float("inf")
    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = MemoryLedger(clock=lambda: self.now)
        self.holder = replace(self.claim(b"1" * 16), lease=10_000.0)
        held = self.ledger.claim(self.holder)
        assert isinstance(held, Granted)
        self.held = held

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if self.now >= self.until:
            self.ledger.release(self.held, retries=0, reset=True, keep=None)

    def claim(self, identity: bytes) -> Claim:
        return Claim(
            digest=b"d" * 16,
            key="sync",
            attempt=secrets.token_bytes(8),
            identity=identity,
            task_id="",
            fingerprint=b"",
            lease=LEASE,
            max_takeovers=5,
            recurs=True,
        )

    def run(self, delivery: Delivery, *, waits: bool, identity: bytes = b"2" * 16) -> str:
        plan = Plan(
            claim=self.claim(identity),
            delivery=delivery,
            encode=lambda result: Encoded(payload=str(result).encode()),
            encode_failure=lambda error: str(error).encode(),
            remember=(),
            ignored=(),
            controls=(),
            replaced=lambda: False,
            handed_on=lambda: False,
            emit=lambda _: None,
            patience=LEASE,
            waits=waits,
            clock=lambda: self.now,
            sleep=self.sleep,
        )
        keeper = Keeper(lambda: self.ledger, emit=lambda _: None, clock=lambda: 0.0)
        attempt = LeasedAttempt(plan, self.ledger, keeper)
        try:
            return str(attempt.run(lambda: "done"))
        finally:
            attempt.close()


@pytest.mark.parametrize(("delivery", "waits"), [(MESSAGE, True), (CALL, False), (CALL, True)])
def test_waiting_ends_when_the_key_is_free(delivery: Delivery, waits: object) -> None:
    scene = Scene(until=1003.0)
    assert scene.run(delivery, waits=bool(waits)) == "done"
    assert 3.0 <= sum(scene.slept) < 4.0


@pytest.mark.parametrize(("delivery", "waits"), [(MESSAGE, True), (CALL, False)])
def test_nobody_waits_longer_than_a_lease(delivery: Delivery, waits: object) -> None:
    scene = Scene()
    with pytest.raises(Refusal) as refused:
        scene.run(delivery, waits=bool(waits))
    assert isinstance(refused.value.verdict, Busy)
    assert sum(scene.slept) == pytest.approx(LEASE)


def test_a_message_waits_only_where_its_policy_says_so() -> None:
    scene = Scene()
    with pytest.raises(Refusal):
        scene.run(MESSAGE, waits=False)
    assert scene.slept == []


def test_a_copy_of_the_holders_own_message_is_put_off_at_once() -> None:
    """It would take a place in the pool to wait for itself (rule 4)."""
    scene = Scene()
    with pytest.raises(Refusal) as refused:
        scene.run(MESSAGE, waits=True, identity=scene.holder.identity)
    assert isinstance(refused.value.verdict, Busy)
    assert refused.value.verdict.own
    assert scene.slept == []


def test_looks_grow_rarer() -> None:
    """A key that stays busy is asked about twice a second."""
    scene = Scene()
    with pytest.raises(Refusal):
        scene.run(MESSAGE, waits=True)
    assert scene.slept[0] == pytest.approx(0.01)
    assert max(scene.slept) == pytest.approx(0.5)
