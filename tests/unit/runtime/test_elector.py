"""The elector, with time that passes when a test says so."""

from collections.abc import Callable

import pytest

from effectonce.domain.terms import Term
from effectonce.errors import LedgerUnavailable
from effectonce.events import Event, Name
from effectonce.runtime.elector import Elector
from effectonce.stores.memory_schedule import MemorySchedule


class Time:
    """One clock for the store and for everybody who asks it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Shaky(MemorySchedule):
    """A store that can be away, and whose answers can be late."""

    def __init__(self, time: Time) -> None:
        super().__init__("memory://shaky", time)
        self._time = time
        self.away = False
        self.late = 0.0

    def _reach(self) -> None:
        if self.away:
            raise LedgerUnavailable(ledger=self.name, reason="it is away")

    def win(self, name: str, *, holder: bytes, who: str, length: float) -> Term | None:
        self._reach()
        term = super().win(name, holder=holder, who=who, length=length)
        self._time.now += self.late
        return term

    def renew_term(self, term: Term, *, length: float) -> bool:
        self._reach()
        held = super().renew_term(term, length=length)
        self._time.now += self.late
        return held

    def resign(self, term: Term) -> None:
        self._reach()
        super().resign(term)


class Race:
    """A store, a clock, and those who want to lead."""

    def __init__(self) -> None:
        self.time = Time()
        self.store = Shaky(self.time)
        self.events: list[Event] = []

    def elector(self, who: str) -> Elector:
        return Elector(lambda: self.store, name="beat", who=who, length=9.0, emit=self.events.append, clock=self.time)

    def names(self) -> list[Name]:
        return [event.name for event in self.events]


@pytest.fixture
def race() -> Race:
    return Race()


def test_the_first_to_ask_leads_and_the_other_asks_again_within_a_lease(race: Race) -> None:
    first, second = race.elector("a"), race.elector("b")
    first.look()
    assert second.look() < 9.0 / 2
    assert first.term is not None
    assert second.term is None
    assert race.names() == [Name.TERM_WON]


def test_a_leader_renews_when_a_third_has_gone(race: Race) -> None:
    elector = race.elector("a")
    elector.look()
    for _ in range(10):
        race.time.now += elector.look()
        elector.look()
        assert elector.term is not None
    (seat,) = race.store.seats()
    assert seat.left > 9.0 * 0.6


def test_a_leader_that_cannot_ask_stops_before_its_lease_ends(race: Race) -> None:
    elector, other = race.elector("a"), race.elector("b")
    elector.look()
    race.store.away = True
    while elector.term is not None:
        race.time.now += max(elector.look(), 0.01)
    race.store.away = False
    (seat,) = race.store.seats()
    assert seat.left <= 9.0 / 12
    assert race.names() == [Name.TERM_WON, Name.TERM_LOST]
    race.time.now += seat.left
    other.look()
    assert other.term is not None


@pytest.mark.parametrize("late", [0.5, 3.0, 8.9, 20.0])
def test_a_slow_answer_never_buys_time(race: Race, late: float) -> None:
    """However late the answer, trust ends no later than the store lets another win."""
    elector = race.elector("a")
    race.store.late = late
    elector.look()
    race.store.late = 0.0
    race.time.now += 0.001
    while elector.term is not None:
        assert race.store.seats()[0].left > 0
        race.time.now += 0.1


def test_one_that_slept_past_its_lease_does_not_lead_when_it_wakes(race: Race) -> None:
    elector, other = race.elector("a"), race.elector("b")
    elector.look()
    old = elector.term
    race.time.now += 9.5
    other.look()
    assert elector.term is None
    assert other.term is not None
    elector.look()
    assert elector.term is None
    assert old is not None
    assert other.term.fence > old.fence


def test_it_wins_again_only_with_a_larger_fence(race: Race) -> None:
    elector = race.elector("a")
    fences = []
    for _ in range(3):
        elector.look()
        assert elector.term is not None
        fences.append(elector.term.fence)
        race.time.now += 9.5
        assert elector.term is None
    assert fences == sorted(set(fences))


def test_who_resigns_is_followed_at_once_and_may_pause(race: Race) -> None:
    elector, other = race.elector("a"), race.elector("b")
    elector.look()
    elector.resign(why="the broker cannot be reached", pause=20.0)
    assert elector.look() > 9.0
    assert elector.term is None
    other.look()
    assert other.term is not None


def test_a_resignation_that_cannot_be_told_leaves_the_term_to_end(race: Race) -> None:
    elector = race.elector("a")
    elector.look()
    race.store.away = True
    elector.resign(why="stopped")
    assert elector.term is None
    race.store.away = False
    assert race.store.seats()[0].is_held


def test_after_it_was_stopped_it_wins_nothing(race: Race) -> None:
    elector = race.elector("a")
    elector.stop()
    elector.look()
    assert elector.term is None
    assert not race.store.seats()[0].is_held


def test_its_loop_leads_and_ends(race: Race, wait: Callable[[Callable[[], bool]], None]) -> None:
    elector = race.elector("a")
    elector.start()
    wait(lambda: elector.term is not None)
    elector.stop()
    assert elector.term is None
