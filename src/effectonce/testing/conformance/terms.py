"""Who leads: rules about terms."""

import secrets
from concurrent.futures import ThreadPoolExecutor

import pytest

from effectonce.domain.terms import Term
from effectonce.ports import ScheduleStore
from effectonce.testing.conformance.clocks import StoreClock

LONG = 3600.0


def new_name() -> str:
    """A group that nobody has heard of."""
    return f"beat:{secrets.token_hex(6)}"


def won(store: ScheduleStore, name: str, *, length: float = LONG) -> Term:
    """Win, and insist that it is granted."""
    term = store.win(name, holder=secrets.token_bytes(16), who="here:1", length=length)
    assert term is not None
    return term


class ScheduleSuite(StoreClock):
    """What a store's test class gives to the rules of terms and ticks."""

    @pytest.fixture
    def schedule(self) -> ScheduleStore:
        """The store under test, its schema created; give it in the subclass."""
        raise NotImplementedError

    def ended(self, store: ScheduleStore, name: str) -> Term:
        """A term that was won and has ended by itself."""
        term = won(store, name, length=0.001)
        self.until(lambda: all(seat.left <= 0 for seat in store.seats() if seat.name == name))
        return term


class Terms(ScheduleSuite):
    """Rules about winning, renewing and resigning."""

    def test_one_leads_and_the_others_are_told_so(self, schedule: ScheduleStore) -> None:
        name = new_name()
        won(schedule, name)
        assert schedule.win(name, holder=secrets.token_bytes(16), who="there:2", length=LONG) is None
        won(schedule, new_name())

    def test_asked_again_it_gives_the_same_term(self, schedule: ScheduleStore) -> None:
        """The answer may have been lost on the way."""
        name, holder = new_name(), secrets.token_bytes(16)
        first = schedule.win(name, holder=holder, who="here:1", length=LONG)
        assert first is not None
        assert schedule.win(name, holder=holder, who="here:1", length=LONG) == first

    def test_of_many_that_ask_at_once_one_wins(self, schedule: ScheduleStore) -> None:
        name = new_name()
        with ThreadPoolExecutor(8) as threads:
            asked = [
                threads.submit(schedule.win, name, holder=secrets.token_bytes(16), who=str(number), length=LONG)
                for number in range(16)
            ]
        assert len([each for each in asked if each.result() is not None]) == 1

    def test_of_many_that_ask_after_its_end_one_wins(self, schedule: ScheduleStore) -> None:
        name = new_name()
        self.ended(schedule, name)
        with ThreadPoolExecutor(8) as threads:
            asked = [
                threads.submit(schedule.win, name, holder=secrets.token_bytes(16), who=str(number), length=LONG)
                for number in range(16)
            ]
        assert len([each for each in asked if each.result() is not None]) == 1

    def test_fences_only_grow(self, schedule: ScheduleStore) -> None:
        name = new_name()
        terms = [self.ended(schedule, name) for _ in range(4)]
        assert [term.fence for term in terms] == sorted({term.fence for term in terms})

    def test_a_renewed_term_stands_and_an_ended_one_is_not_renewed(self, schedule: ScheduleStore) -> None:
        name = new_name()
        term = won(schedule, name)
        assert schedule.renew_term(term, length=LONG)
        late = self.ended(schedule, new_name())
        assert not schedule.renew_term(late, length=LONG)

    def test_a_renewal_counts_from_now(self, schedule: ScheduleStore) -> None:
        name = new_name()
        term = won(schedule, name)
        assert schedule.renew_term(term, length=60.0)
        (seat,) = [seat for seat in schedule.seats() if seat.name == name]
        assert 0 < seat.left <= 60.0

    def test_an_old_term_neither_renews_nor_ends_a_newer_one(self, schedule: ScheduleStore) -> None:
        """A38: a lock that is lost, and its holder goes on."""
        name = new_name()
        old = self.ended(schedule, name)
        new = won(schedule, name)
        assert not schedule.renew_term(old, length=LONG)
        schedule.resign(old)
        assert schedule.renew_term(new, length=LONG)

    def test_after_a_resignation_another_wins_at_once(self, schedule: ScheduleStore) -> None:
        name = new_name()
        first = won(schedule, name)
        schedule.resign(first)
        assert not schedule.renew_term(first, length=LONG)
        assert won(schedule, name).fence > first.fence

    def test_anybody_can_see_who_leads(self, schedule: ScheduleStore) -> None:
        name = new_name()
        term = won(schedule, name)
        (seat,) = [seat for seat in schedule.seats() if seat.name == name]
        assert (seat.fence, seat.who, seat.is_held) == (term.fence, "here:1", True)
        assert seat.since > 0
