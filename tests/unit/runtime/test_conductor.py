"""The conductor, with a store in memory, a broker in a list, and time that passes when a test says so."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from effectonce.domain.series import SECOND, Grid
from effectonce.domain.terms import Term
from effectonce.domain.ticks import MOST_AT_ONCE, Claimed, Missed, Planned, Tick, TickClaim, TickState
from effectonce.errors import LedgerUnavailable
from effectonce.events import Event, Name
from effectonce.runtime.conductor import BATCH, ClockWrong, Conductor, Deposed
from effectonce.runtime.sending import NotSent, SendingConductor
from effectonce.stores.memory_schedule import MemorySchedule
from tests.unit.runtime.test_elector import Time

START = 1_800_000_000
EVERY = 10


class Store(MemorySchedule):
    """A store whose answer to a claim or a mark can be lost."""

    lose_claim = lose_mark = False

    def claim_ticks(self, term: Term, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        answers = super().claim_ticks(term, claims)
        if self.lose_claim:
            raise LedgerUnavailable(ledger=self.name, reason="the answer was lost")
        return answers

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        if self.lose_mark:
            raise LedgerUnavailable(ledger=self.name, reason="the question was lost")
        super().mark_ticks(ticks)


@dataclass
class Stage:
    """Store, clock, broker, and the term that stands."""

    time: Time = field(default_factory=Time)
    sent: list[tuple[str, int]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    noted: list[Tick] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    broken: type[Exception] | None = None
    trusted: bool = True

    def __post_init__(self) -> None:
        self.store = Store("memory://stage", self.time)
        self.known: dict[str, Planned] = {}

    def reign(self) -> Conductor:
        """A new leader."""
        for seat in self.store._seats.values():
            self.store.resign(seat.term)
        term = self.store.win("beat", holder=secrets.token_bytes(16), who="here", length=10_000)
        assert term is not None
        self.term = term
        return SendingConductor(
            self.store,
            group="beat",
            term=lambda: term if self.trusted else None,
            find=self.known.get,
            send=self.send,
            note=self.noted.append,
            emit=self.events.append,
            since=self.now,
        )

    @property
    def now(self) -> int:
        return int(self.time.now * SECOND)

    def send(self, _: Planned, tick: Tick) -> None:
        if self.broken is not None:
            raise self.broken
        self.sent.append((tick.name, tick.instant // SECOND - START))
        self.ids.append(tick.task_id)

    def entry(self, name: str = "report", *, missed: Missed = Missed.LATEST, life: int | None = None) -> Planned:
        made = Planned(
            name=name, series=Grid(EVERY * SECOND), missed=missed, start=START * SECOND, life=life and life * SECOND
        )
        self.known[name] = made
        return made

    def at(self, seconds: float) -> int:
        """Let it be so many seconds after the start."""
        self.time.now = START + seconds
        return self.now


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_tick_is_sent_when_it_is_due_and_once(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    assert leader.play([entry], stage.at(1)) == {"report": (START + 10) * SECOND}
    assert leader.play([entry], stage.at(10.01)) == {"report": (START + 20) * SECOND}
    leader.play([entry], stage.at(11))
    leader.play([entry], stage.at(20))
    assert stage.sent == [("report", 10), ("report", 20)]
    assert stage.store.unmarked("beat") == []


def test_a_next_leader_goes_on_after_the_last_tick_also_of_an_entry_that_was_only_seen(stage: Stage) -> None:
    """Its own memory of the last run, an old schedule file, does not count."""
    entry = stage.entry()
    stage.reign().play([entry], stage.at(1))
    stage.reign().play([entry], stage.at(12))
    stage.reign().play([entry], stage.at(15))
    assert stage.sent == [("report", 10)]


def test_a_tick_that_was_claimed_and_not_marked_is_sent_again_with_its_id(stage: Stage) -> None:
    """H16."""
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_mark = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    stage.store.lose_mark = False
    stage.reign().play([], stage.at(11))
    assert stage.sent == [("report", 10)] * 2
    assert len(set(stage.ids)) == 1
    assert stage.store.unmarked("beat") == []


def test_a_leader_that_lost_the_answer_to_its_claim_sends_the_tick_once(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_claim = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    stage.store.lose_claim = False
    leader.play([entry], stage.at(21))
    assert stage.sent == [("report", 10), ("report", 20)]


def test_a_leader_that_could_not_mark_marks_later_and_does_not_send_again(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.store.lose_mark = True
    with pytest.raises(LedgerUnavailable):
        leader.play([entry], stage.at(10))
    stage.store.lose_mark = False
    leader.play([entry], stage.at(11))
    assert stage.sent == [("report", 10)]
    assert stage.store.unmarked("beat") == []


def test_what_the_broker_does_not_take_waits_and_holds_nothing_up(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.broken = NotSent
    leader.play([entry], stage.at(10))
    assert leader.has_unsent
    stage.broken = None
    leader.play([entry], stage.at(12))
    assert stage.sent == [("report", 10)]
    assert not leader.has_unsent


def test_what_can_never_be_sent_is_passed_over_and_the_others_go_on(stage: Stage) -> None:
    leader = stage.reign()
    stage.broken = ValueError
    leader.play([stage.entry("bad")], stage.at(10))
    stage.broken = None
    leader.play([stage.entry("good")], stage.at(10.5))
    assert stage.sent == [("good", 10)]
    assert not leader.has_unsent
    assert stage.events[0].name is Name.TICK_SKIPPED
    assert stage.store.last_ticks("beat", ["bad"])["bad"].state is TickState.SKIPPED


def test_without_the_term_nothing_is_claimed_or_sent(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.trusted = False
    with pytest.raises(Deposed):
        leader.play([entry], stage.at(10))
    assert stage.sent == []
    assert stage.store.recent(limit=10) == []


def test_a_term_that_another_has_won_is_noticed_by_the_store(stage: Stage) -> None:
    """A38: it believes that it leads, and the store knows better."""
    entry, old = stage.entry(), stage.reign()
    new = stage.reign()
    with pytest.raises(Deposed):
        old.play([entry], stage.at(10))
    new.play([entry], stage.at(10))
    assert stage.sent == [("report", 10)]


def test_a_clock_that_runs_far_ahead_of_the_store_sends_nothing(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.at(1)
    with pytest.raises(ClockWrong):
        leader.play([entry], (START + 1000) * SECOND)
    assert stage.sent == []


def test_an_unmarked_tick_whose_entry_is_gone_is_passed_over(stage: Stage) -> None:
    entry, leader = stage.entry(), stage.reign()
    stage.broken = NotSent
    leader.play([entry], stage.at(10))
    stage.broken = None
    stage.known.clear()
    stage.reign().play([], stage.at(12))
    assert stage.sent == []
    assert stage.store.unmarked("beat") == []
    assert stage.events[-1].facts["why"] == "its entry is gone"


@pytest.mark.parametrize(
    ("missed", "expected"), [(Missed.LATEST, [50]), (Missed.ALL, [10, 20, 30, 40, 50]), (Missed.SKIP, [])]
)
def test_missed_ticks_follow_the_policy_of_their_entry(stage: Stage, missed: Missed, expected: list[int]) -> None:
    """Nobody led for a while."""
    entry = stage.entry(missed=missed)
    stage.reign().play([entry], stage.at(1))
    stage.at(52)
    stage.reign().play([entry], stage.at(53))
    assert [instant for _, instant in stage.sent] == expected
    skipped = [event.facts["missed"] for event in stage.events if event.name is Name.TICK_SKIPPED]
    assert sum(skipped) == 5 - len(expected)


def test_of_very_many_missed_ticks_the_newest_are_sent_and_the_others_counted(stage: Stage) -> None:
    """A beat that was away for a week does not flood its workers."""
    entry = stage.entry(missed=Missed.ALL)
    stage.reign().play([entry], stage.at(1))
    stage.reign().play([entry], stage.at(1503))
    assert [instant for _, instant in stage.sent] == list(range(1500 - 10 * (MOST_AT_ONCE - 1), 1501, 10))
    assert sum(event.facts["missed"] for event in stage.events if event.name is Name.TICK_SKIPPED) == 150 - MOST_AT_ONCE


def test_after_skipping_the_next_one_comes(stage: Stage) -> None:
    entry = stage.entry(missed=Missed.SKIP)
    stage.reign().play([entry], stage.at(1))
    stage.at(52)
    leader = stage.reign()
    leader.play([entry], stage.at(53))
    leader.play([entry], stage.at(60))
    assert stage.sent == [("report", 60)]


def test_a_tick_past_its_use_is_passed_over(stage: Stage) -> None:
    entry = stage.entry(life=5)
    stage.reign().play([entry], stage.at(1))
    stage.reign().play([entry], stage.at(17))
    leader = stage.reign()
    leader.play([entry], stage.at(24))
    assert stage.sent == [("report", 20)]


def test_more_than_a_batch_is_sent_in_one_pass(stage: Stage) -> None:
    entries = [stage.entry(f"e{number}") for number in range(3 * BATCH + 1)]
    leader = stage.reign()
    leader.play(entries, stage.at(1))
    leader.play(entries, stage.at(10))
    assert len(stage.sent) == len(set(stage.sent)) == len(entries)


def test_ids_differ_by_group_entry_and_instant() -> None:
    ticks = [Tick(group=group, name=name, instant=at) for group in "ab" for name in ("x", "y") for at in (1, 2)]
    assert len({tick.task_id for tick in ticks}) == len(ticks)
