"""The model is like the product: its ledger like the memory store, its steps like those of the attempts.

What it takes from the product itself (`admit`, `judge`, `Delivery`, `Plan`, `Key`) cannot differ. What it says in its
own words can, and is compared here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest
from celery.exceptions import Ignore, Retry

from effectonce.app import call, endings
from effectonce.app.worker_request import ComesBack
from effectonce.domain.claims import Busy, Claim, Granted, Outcome, Refused, State, judge
from effectonce.errors import LedgerUnavailable, OutsideEffect
from effectonce.runtime.leased import LeasedAttempt
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.signals import Away, Fenced, Raised
from effectonce.runtime.transactional import TransactionalAttempt
from effectonce.stores.memory import MemoryLedger
from tests.model.brokers import RabbitMQ
from tests.model.checker import walk
from tests.model.endings import counted
from tests.model.faults import time_passes
from tests.model.games import NOT_YET, Game, Rule
from tests.model.ledger import LEASE, ask, can_be_claimed, claim_of, claimed, delivery, ended, holds, verdict_on
from tests.model.protocol import start
from tests.model.unwinding import let_go
from tests.model.worlds import Hand, Message, Stage, World, with_hand

GAME = Game(broker=RabbitMQ(), transactional=False, most=3)


@dataclass
class Both:
    """The memory store and a world, taken through the same writes; a grant is known by when it was given."""

    now: float = 1000.0
    world: World = field(default_factory=lambda: start(GAME)._replace(queue=()))
    granted: list[tuple[Granted, Hand]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryLedger(clock=lambda: self.now)

    def claim(self, message: Message) -> None:
        """Ask both for a claim; a retry brings the fence of the last grant."""
        self.now += 0.001
        theirs = self.granted[-1] if message.retries and self.granted else None
        attempt = len(self.granted) + 1
        told = self.store.claim(_claim(message, attempt, theirs[0].fence if theirs else None))
        modelled = ask(GAME, self.world, message._replace(reenter=theirs[1].fence if theirs else 0))
        assert type(told) is type(modelled)
        if isinstance(told, Granted) and isinstance(modelled, Granted):
            assert (told.takeover, told.deaths) == (modelled.takeover, modelled.deaths)
            record = claimed(GAME, self.world.record, modelled, message)
            self.world = self.world._replace(record=record)
            self.granted.append((told, Hand(fence=record.fence, attempt=record.attempt, committed=True)))
        elif isinstance(told, Refused):
            verdict = judge(told, _claim(message, attempt, None))
            assert type(verdict) is type(verdict_on(GAME, self.world.record, message))

    def complete(self, outcome: Outcome) -> None:
        """Settle by the first grant."""
        if not self.granted:
            return
        granted, hand = self.granted[0]
        done = self.store.complete(granted, outcome)
        record = self.world.record
        if record is not None and record.state is State.CLAIMED and holds(GAME, record, hand):
            assert done
            self.world = self.world._replace(record=ended(record, outcome))

    def release(self, *, reset: bool) -> None:
        """Release by the first grant."""
        if self.granted:
            granted, hand = self.granted[0]
            self.store.release(granted, retries=1, reset=reset, keep=None)
            self.world = let_go(GAME, self.world, hand, reset=reset)

    def mark(self) -> None:
        """Mark by the last grant."""
        if self.granted:
            granted, hand = self.granted[-1]
            self.store.mark_continued(granted.digest, granted.attempt)
            owing = with_hand(self.world, 0, hand._replace(stage=Stage.COUNTED, marks=True))
            ((_, _, marked),) = counted(GAME, owing, 0)
            self.world = with_hand(marked, 0, Hand())

    def wait(self) -> None:
        """Let a lease end; twice, and the rescuer has its turn."""
        record = self.world.record
        over = record is not None and record.state is State.CLAIMED and not record.live
        self.now += LEASE + 1
        if over:
            self.store.rescue(10)
        self.world = next((after for _, _, after in time_passes(GAME, self.world)), self.world)

    def check(self) -> None:
        """Both say the same of the entry."""
        record = self.world.record
        entry = self.store.read(claim_of(Message(), attempt=0, most=0).digest)
        assert (entry is None) == (record is None)
        if entry is None or record is None:
            return
        holders = [granted.attempt == entry.attempt for granted, _ in self.granted]
        assert holders == [hand.attempt == record.attempt for _, hand in self.granted]
        assert (entry.state, entry.deaths) == (record.state, record.deaths)
        assert (entry.continued, entry.handed_over, entry.result_kept) == (
            record.continued,
            record.handed_over,
            record.kept,
        )
        assert entry.identity == delivery(Message(who=record.who), flags=True).identity
        if entry.state is State.CLAIMED:
            assert (entry.lease_left > 0) == record.live


def _claim(message: Message, attempt: int, reenter: int | None) -> Claim:
    made = claim_of(message._replace(reenter=reenter or 0), attempt=attempt, most=GAME.most)
    assert made.reenter == reenter
    return made


WRITES: list[Callable[[Both], None]] = [
    lambda both: both.claim(Message(who=1)),
    lambda both: both.claim(Message(who=2)),
    lambda both: both.claim(Message(who=1, retries=1)),
    lambda both: both.complete(Outcome(state=State.COMPLETED)),
    lambda both: both.complete(Outcome(state=State.COMPLETED, handed_over=True, continued=True, kept=False)),
    lambda both: both.release(reset=False),
    lambda both: both.release(reset=True),
    Both.mark,
    Both.wait,
]


def test_the_ledger_of_the_model_is_like_the_memory_store() -> None:
    """After every row of four writes that begins with a claim."""
    for writes in product(WRITES, repeat=4):
        both = Both()
        for write in (WRITES[0], *writes):
            write(both)
            both.check()


class Recorder:
    """Stands in for a store, its work and the keeper; grants all, and records what it was asked."""

    name = "recorder"
    is_broken = False

    def __init__(self) -> None:
        self.asked: list[str] = []

    def claim(self, claim: Claim) -> Granted:
        return self._grant("claim", claim)

    def enter(self) -> Granted:
        return self._grant("enter", claim_of(Message(who=1), attempt=1, most=0))

    def complete(self, _: Granted, outcome: Outcome) -> bool:
        self.asked.append(f"complete {outcome.state.name}")
        return True

    def release(self, _: Granted, *, retries: int, reset: bool, keep: float | None) -> bool:
        self.asked.append(f"release {retries} {reset} {keep}")
        return True

    def finish(self, outcome: Outcome) -> bool:
        self.asked.append(f"finish {outcome.state.name}")
        return True

    def hand_over(self, _: Any) -> tuple[()]:
        return ()

    def meaning(self, error: BaseException) -> BaseException:
        return error

    def commit(self) -> None:
        self.asked.append("commit")

    def rollback(self) -> None:
        self.asked.append("rollback")

    def is_conflict(self, _: BaseException) -> bool:
        return False

    is_lost = is_conflict

    @contextmanager
    def work(self, *_: Any, **__: Any) -> Iterator["Recorder"]:
        yield self

    @contextmanager
    def holding(self, *_: Any, **__: Any) -> Iterator[Any]:
        yield SimpleNamespace(is_trusted=lambda _: True)

    def body(self) -> str:
        self.asked.append("body")
        return "paid"

    def retries(self) -> None:
        self.asked.append("body")
        raise Retry

    def _grant(self, asked: str, claim: Claim) -> Granted:
        self.asked.append(asked)
        return Granted(digest=claim.digest, attempt=claim.attempt, fence=1, takeover=False, deaths=0, attempts=1)


def _plan(message: Message) -> Plan:
    return Plan(
        claim=claim_of(message, attempt=1, most=0),
        delivery=delivery(message, flags=True),
        encode=lambda result: Encoded(payload=result.encode()),
        encode_failure=lambda _: b"",
        remember=(),
        ignored=(Ignore,),
        controls=(Retry,),
        replaced=lambda: False,
        handed_on=lambda: False,
        emit=lambda _: None,
        patience=0.0,
    )


def _leased(recorder: Any, message: Message) -> LeasedAttempt:
    return LeasedAttempt(_plan(message), recorder, recorder)


def _transactional(recorder: Any, message: Message) -> TransactionalAttempt:
    return TransactionalAttempt(_plan(message), recorder, outer=None, allow_escape=False)


FIRST, AGAIN = Message(who=1), Message(who=1, flagged=True)


def test_a_leased_attempt_takes_the_steps_of_the_model() -> None:
    recorder = Recorder()
    _leased(recorder, FIRST).run(recorder.body)
    assert recorder.asked == ["claim", "body", "complete COMPLETED"]


@pytest.mark.parametrize(
    ("message", "steps"),
    [(FIRST, ["enter", "body", "finish COMPLETED", "commit"]), (AGAIN, ["claim", "enter", "body", "finish COMPLETED"])],
    ids=["first", "may repeat"],
)
def test_a_transactional_attempt_takes_the_steps_of_the_model(message: Message, steps: list[str]) -> None:
    recorder = Recorder()
    _transactional(recorder, message).run(recorder.body)
    assert recorder.asked[: len(steps)] == steps
    assert recorder.asked[-1] == "commit"


def test_a_retry_is_rolled_back_published_and_only_then_released() -> None:
    recorder = Recorder()
    attempt = _transactional(recorder, AGAIN)
    with pytest.raises(Retry):
        attempt.run(recorder.retries)
    frame: Any = SimpleNamespace(attempt=attempt, retry=lambda: recorder.asked.append("publish"))
    call._retry(frame)
    assert recorder.asked == ["claim", "enter", "body", "rollback", "publish", "release 1 False None"]


def test_a_copy_is_out_before_its_delivery_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Ignore` is what makes Celery acknowledge."""
    frame, sent = _frame(monkeypatch)
    with pytest.raises(Ignore):
        endings.refused(frame, Busy(wait=1.0, own=True))
    assert sent == ["copy"]


@pytest.mark.parametrize("rule", [Rule.FENCED_FAILURE_DEFERS, Rule.FENCED_ERROR_DEFERS, Rule.FENCED_IGNORE_DEFERS])
def test_the_model_knows_which_fenced_holders_put_their_delivery_off(
    monkeypatch: pytest.MonkeyPatch, rule: Rule
) -> None:
    frame, sent = _frame(monkeypatch)
    raised = {
        Rule.FENCED_FAILURE_DEFERS: ValueError(),
        Rule.FENCED_ERROR_DEFERS: Raised(OutsideEffect(face="effect")),
        Rule.FENCED_IGNORE_DEFERS: Ignore(),
    }[rule]
    with pytest.raises((Ignore, ValueError, OutsideEffect)):
        call._go(frame, _raising(raised), (), {})
    assert (sent == ["copy"]) == (rule not in NOT_YET)


def test_the_model_knows_that_a_ledger_which_is_away_puts_deliveries_off(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, sent = _frame(monkeypatch)
    with pytest.raises(Ignore):
        call._go(frame, _raising(Away(LedgerUnavailable(ledger="recorder", reason="gone"))), (), {})
    assert sent == ["abandoned", "copy"]


def test_the_model_knows_whether_a_hard_time_limit_comes_back() -> None:
    assert ("on_timeout" in vars(ComesBack)) == (Rule.LIMIT_COMES_BACK not in NOT_YET)


def test_a_lone_worker_of_the_model_takes_one_road() -> None:
    """Without faults there is nothing to choose: the worlds of one message are its steps."""
    game = Game(broker=RabbitMQ(), transactional=False, workers=1)
    assert walk(game).states == 1 + len(["receive", "claim", "act", "complete", "link", "store", "mark", "acknowledge"])
    assert not can_be_claimed(game, None, FIRST)


def _raising(error: BaseException) -> Callable[..., Any]:
    def plain(*_: Any) -> None:
        raise error

    return plain


def _frame(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[str]]:
    sent: list[str] = []
    monkeypatch.setattr(endings, "_send_copy", lambda *_, **__: sent.append("copy"))

    def fenced() -> None:
        raise Fenced

    once = SimpleNamespace(longest_delay=60.0, away_delay=lambda _: 1.0)
    guard = SimpleNamespace(once=once, happened=lambda *_, **__: None, policy=SimpleNamespace(on_busy="defer"))
    attempt = SimpleNamespace(failed=fenced, ignored=fenced, abandoned=lambda: sent.append("abandoned"), is_done=False)
    deferrable = delivery(FIRST, flags=True)
    claim = claim_of(FIRST, attempt=1, most=0)
    parts = {"task": None, "request": None, "retry": None, "guard": guard, "attempt": attempt, "claim": claim}
    return SimpleNamespace(delivery=deferrable, **parts), sent
