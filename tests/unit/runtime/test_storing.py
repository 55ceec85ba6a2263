"""The conductor whose ticks and messages are one commit, with a store in memory and time that a test moves."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from effectonce.domain.outbox import Message, Stored
from effectonce.domain.series import SECOND, Grid
from effectonce.domain.terms import Term
from effectonce.domain.ticks import Claimed, Missed, Planned, Tick, TickClaim, TickState
from effectonce.errors import LedgerUnavailable
from effectonce.events import Event, Name
from effectonce.runtime.conductor import BATCH, Deposed
from effectonce.runtime.storing import StoringConductor
from effectonce.stores.memory_schedule import MemorySchedule
from effectonce.testing.conformance.outbox import new_message
from tests.unit.runtime.test_elector import Time

START = 1_800_000_000
EVERY = 10


class Store(MemorySchedule):
    """Ticks and an outbox that are written together; the answer to it can be lost, or nothing be written at all."""

    lose_answer = lose_question = lose_mark = False

    def __init__(self, name: str, clock: Time) -> None:
        super().__init__(name, clock)
        self.outbox: list[Message] = []

    def claim_and_store(
        self, term: Term, claims: Sequence[TickClaim], messages: Sequence[Sequence[Message]]
    ) -> tuple[Sequence[Claimed], Sequence[Stored]]:
        if self.lose_question:
            raise LedgerUnavailable(ledger=self.name, reason="it is away")
        answers = self.claim_ticks(term, claims)
        granted = [
            each for answer, of in zip(answers, messages, strict=True) if answer is Claimed.GRANTED for each in of
        ]
        self.outbox += granted
        if self.lose_answer:
            raise LedgerUnavailable(ledger=self.name, reason="the answer was lost")
        return answers, [Stored(id=number, message=each, tries=0) for number, each in enumerate(granted)]

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        if self.lose_mark:
            raise LedgerUnavailable(ledger=self.name, reason="the question was lost")
        super().mark_ticks(ticks)


def message_of(tick: Tick) -> Message:
    return new_message(task=tick.name, task_id=tick.task_id)


@dataclass
class Stage:
    """Store, clock, broker, schedule, and the term that stands."""

    time: Time = field(default_factory=Time)
    departed: list[str] = field(default_factory=list)
    noted: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    known: dict[str, Planned] = field(default_factory=dict)
    trusted: bool = True
    bad: bool = False
    sleeps_after_commit: bool = False

    def __post_init__(self) -> None:
        self.store = Store("memory://stage", self.time)

    def reign(self) -> StoringConductor:
        """A new leader."""
        for seat in self.store._seats.values():
            self.store.resign(seat.term)
        term = self.store.win("beat", holder=secrets.token_bytes(16), who="here", length=10_000)
        assert term is not None

        def trusted() -> Term | None:
            slept = self.sleeps_after_commit and self.store.outbox
            return term if self.trusted and not slept else None

        return StoringConductor(
            self.store,
            record=self.record,
            depart=lambda stored: self.departed.extend(each.message.task_id for each in stored),
            group="beat",
            term=trusted,
            find=self.known.get,
            note=lambda tick: self.noted.append(tick.instant // SECOND - START),
            emit=self.events.append,
            since=int(self.time.now * SECOND),
        )

    def record(self, _: Planned, tick: Tick) -> list[Message]:
        if self.bad:
            raise ValueError
        return [message_of(tick)]

    def entry(self, name: str = "report") -> Planned:
        made = Planned(name=name, series=Grid(EVERY * SECOND), missed=Missed.ALL, start=START * SECOND)
        self.known[name] = made
        return made

    def at(self, seconds: float) -> int:
        """Let it be so many seconds after the start."""
        self.time.now = START + seconds
        return int(self.time.now * SECOND)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_tick_and_its_message_are_stored_together_sent_noted_and_marked(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    leader.play([entry], stage.at(1))
    leader.play([entry], stage.at(20))
    assert [each.task_id for each in stage.store.outbox] == stage.departed
    assert stage.noted == [10, 20]
    assert stage.store.unmarked("beat") == []
    assert [event.name for event in stage.events] == [Name.TICK_SENT] * 2


def test_a_leader_whose_commit_fails_leaves_nothing_and_the_tick_is_still_due(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_question = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    stage.store.lose_question = False
    stage.reign().play([entry], stage.at(11))
    assert len(stage.store.outbox) == len(stage.departed) == 1


def test_a_leader_that_dies_after_the_commit_leaves_a_message_and_its_successor_sends_no_second_one(
    stage: Stage,
) -> None:
    """H16, closed: the relay has the message, and the schedule learns of it."""
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_answer = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    assert stage.noted == []
    stage.store.lose_answer = False
    stage.reign().play([entry], stage.at(11))
    assert len(stage.store.outbox) == 1
    assert stage.departed == []
    assert stage.noted == [10]
    assert stage.store.unmarked("beat") == []


def test_a_leader_that_slept_after_its_commit_leaves_the_message_to_the_relay(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.sleeps_after_commit = True
    with pytest.raises(Deposed):
        leader.play([entry], stage.at(10))
    assert len(stage.store.outbox) == 1
    assert stage.departed == []


def test_a_mark_that_was_lost_is_repeated_and_nothing_else(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_mark = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    stage.store.lose_mark = False
    leader.play([entry], stage.at(11))
    assert len(stage.store.outbox) == len(stage.departed) == 1
    assert stage.store.unmarked("beat") == []


def test_what_can_never_be_sent_is_passed_over_and_the_others_go_on(stage: Stage) -> None:
    leader = stage.reign()
    stage.bad = True
    leader.play([stage.entry("bad")], stage.at(10))
    stage.bad = False
    leader.play([stage.entry("good")], stage.at(10.5))
    assert [each.task for each in stage.store.outbox] == ["good"]
    assert stage.store.last_ticks("beat", ["bad"])["bad"].state is TickState.SKIPPED


def test_a_tick_that_an_older_leader_claimed_without_its_message_gets_one(stage: Stage) -> None:
    """A version before, or another place for leases: the claim stood alone."""
    stage.entry()
    leader = stage.reign()
    seat = stage.store._seats["beat"].term
    tick = Tick(group="beat", name="report", instant=(START + 10) * SECOND)
    stage.at(10)
    stage.store.claim_ticks(seat, [TickClaim(tick=tick, state=TickState.CLAIMED)])
    leader.play([], stage.at(11))
    assert stage.departed == [tick.task_id]
    assert stage.store.unmarked("beat") == []


def test_a_stored_tick_whose_entry_is_gone_is_marked(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_mark = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    stage.store.lose_mark = False
    stage.known.clear()
    stage.reign().play([], stage.at(12))
    assert stage.store.unmarked("beat") == []
    assert stage.store.last_ticks("beat", ["report"])["report"].state is TickState.SENT


def test_more_than_a_batch_goes_out_in_one_pass(stage: Stage) -> None:
    entries = [stage.entry(f"e{number}") for number in range(2 * BATCH + 1)]
    leader = stage.reign()
    leader.play(entries, stage.at(1))
    leader.play(entries, stage.at(10))
    assert len(stage.departed) == len(set(stage.departed)) == len(entries)


class Counting(Store):
    """Counts how often it is asked."""

    asked = 0

    def claim_ticks(self, term: Term, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        self.asked += 1
        return super().claim_ticks(term, claims)

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        self.asked += 1
        super().mark_ticks(ticks)


def test_of_ten_thousand_entries_only_those_that_are_due_cost_a_round_trip(stage: Stage) -> None:
    """The lateness that comes of it is measured in ``bench/beat.py``."""
    stage.store = Counting("memory://many", stage.time)
    entries = [stage.entry(f"e{number}") for number in range(10_000)]
    leader = stage.reign()
    leader.play(entries, stage.at(1))
    stage.store.asked = 0
    leader.play(entries[: 2 * BATCH], stage.at(10))
    assert len(stage.departed) == 2 * BATCH
    assert stage.store.asked == 4
    leader.play([], stage.at(11))
    assert stage.store.asked == 4
