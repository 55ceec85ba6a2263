"""Which ticks are granted: rules about claims and marks."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from effectonce.domain.terms import Term
from effectonce.domain.ticks import Claimed, Tick, TickClaim, TickState
from effectonce.ports import ScheduleStore
from effectonce.testing.conformance.terms import LONG, ScheduleSuite, new_name, won

SECOND = 1_000_000


def tick(group: str, number: int, *, name: str = "report") -> Tick:
    """The tick of an entry at second *number* of 1970."""
    return Tick(group=group, name=name, instant=number * SECOND)


def claim_of(wanted: Tick, **changes: Any) -> TickClaim:
    """A claim on a tick that is to be sent."""
    return TickClaim(**{"tick": wanted, "state": TickState.CLAIMED, **changes})


def claimed(store: ScheduleStore, term: Term, *ticks: Tick) -> list[Claimed]:
    """Claim, and give the answers."""
    return list(store.claim_ticks(term, [claim_of(each) for each in ticks]))


class Ticks(ScheduleSuite):
    """Rules about ticks."""

    def test_an_instant_is_granted_and_marked_once(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        assert claimed(schedule, term, tick(group, 10)) == [Claimed.GRANTED]
        schedule.mark_ticks([tick(group, 10)])
        assert claimed(schedule, term, tick(group, 10)) == [Claimed.REFUSED]
        assert schedule.unmarked(group) == []

    def test_only_later_instants_follow(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 10))
        schedule.mark_ticks([tick(group, 10)])
        assert claimed(schedule, term, tick(group, 9)) == [Claimed.REFUSED]
        assert claimed(schedule, term, tick(group, 11)) == [Claimed.GRANTED]

    def test_entries_do_not_stand_in_each_others_way(self, schedule: ScheduleStore) -> None:
        group, other = new_name(), new_name()
        term, their = won(schedule, group), won(schedule, other)
        assert claimed(schedule, term, tick(group, 10), tick(group, 10, name="mail")) == [Claimed.GRANTED] * 2
        assert claimed(schedule, their, tick(other, 10)) == [Claimed.GRANTED]

    def test_each_of_several_claims_has_its_answer(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 10))
        schedule.mark_ticks([tick(group, 10)])
        wanted = [tick(group, 10), tick(group, 11), tick(group, 11, name="mail"), tick(group, 12)]
        answers = [Claimed.REFUSED, Claimed.GRANTED, Claimed.GRANTED, Claimed.GRANTED]
        assert claimed(schedule, term, *wanted) == answers
        assert claimed(schedule, term) == []

    def test_an_unmarked_tick_is_granted_again_to_whoever_leads(self, schedule: ScheduleStore) -> None:
        """H16: killed between claim and send, the tick is not lost."""
        group = new_name()
        old = won(schedule, group)
        claimed(schedule, old, tick(group, 10), tick(group, 11))
        schedule.resign(old)
        new = won(schedule, group)
        assert [row.tick for row in schedule.unmarked(group)] == [tick(group, 10), tick(group, 11)]
        assert claimed(schedule, new, tick(group, 10), tick(group, 11)) == [Claimed.GRANTED] * 2
        assert {row.fence for row in schedule.unmarked(group)} == {new.fence}
        schedule.mark_ticks([tick(group, 10)])
        assert [row.tick for row in schedule.unmarked(group)] == [tick(group, 11)]

    def test_a_term_that_is_over_claims_nothing(self, schedule: ScheduleStore) -> None:
        """A38: stopped past its lease, the old leader sends nothing."""
        group = new_name()
        old = self.ended(schedule, group)
        assert claimed(schedule, old, tick(group, 10)) == [Claimed.FENCED]
        new = won(schedule, group)
        assert claimed(schedule, old, tick(group, 10)) == [Claimed.FENCED]
        claimed(schedule, new, tick(group, 10))
        assert claimed(schedule, old, tick(group, 10)) == [Claimed.FENCED]
        assert {row.fence for row in schedule.unmarked(group)} == {new.fence}

    def test_a_tick_of_the_future_is_not_granted(self, schedule: ScheduleStore) -> None:
        """A clock that runs far ahead would bar the entry until then."""
        group = new_name()
        term = won(schedule, group)
        far = Tick(group=group, name="report", instant=32_503_680_000 * SECOND)
        assert claimed(schedule, term, far) == [Claimed.AHEAD]
        assert claimed(schedule, term, tick(group, 10)) == [Claimed.GRANTED]

    def test_whoever_sent_a_tick_may_mark_it_also_after_its_term(self, schedule: ScheduleStore) -> None:
        group = new_name()
        old = won(schedule, group)
        claimed(schedule, old, tick(group, 10))
        schedule.resign(old)
        schedule.mark_ticks([tick(group, 10)])
        new = won(schedule, group)
        assert schedule.unmarked(group) == []
        assert claimed(schedule, new, tick(group, 10)) == [Claimed.REFUSED]

    def test_what_is_passed_over_or_seen_needs_no_mark_and_counts(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        seen = claim_of(tick(group, 10), state=TickState.SEEN, following=11 * SECOND)
        skipped = claim_of(tick(group, 20), state=TickState.SKIPPED, missed=7)
        assert list(schedule.claim_ticks(term, [seen, skipped])) == [Claimed.GRANTED] * 2
        assert schedule.unmarked(group) == []
        assert claimed(schedule, term, tick(group, 20)) == [Claimed.REFUSED]
        last = schedule.last_ticks(group, ["report"])["report"]
        assert (last.tick.instant, last.state, last.missed) == (20 * SECOND, TickState.SKIPPED, 7)

    def test_one_that_is_refused_does_not_change_the_answers_to_the_others(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 10))
        schedule.mark_ticks([tick(group, 10)])
        seen = claim_of(tick(group, 5, name="new"), state=TickState.SEEN)
        skipped = claim_of(tick(group, 20), state=TickState.SKIPPED)
        answers = schedule.claim_ticks(term, [seen, claim_of(tick(group, 9)), skipped])
        assert list(answers) == [Claimed.GRANTED, Claimed.REFUSED, Claimed.GRANTED]

    def test_an_unmarked_tick_can_be_given_up(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 10))
        given_up = claim_of(tick(group, 10), state=TickState.SKIPPED)
        assert list(schedule.claim_ticks(term, [given_up])) == [Claimed.GRANTED]
        assert schedule.unmarked(group) == []

    def test_the_last_tick_of_an_entry_is_never_forgotten(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 1, name="rare"))
        schedule.mark_ticks([tick(group, 1, name="rare")])
        for number in range(1, 60):
            claimed(schedule, term, tick(group, number))
            schedule.mark_ticks([tick(group, number)])
        last = schedule.last_ticks(group, ["rare", "report", "never"])
        assert {name: row.tick.instant // SECOND for name, row in last.items()} == {"rare": 1, "report": 59}
        assert last["rare"].state is TickState.SENT
        assert claimed(schedule, term, tick(group, 1, name="rare")) == [Claimed.REFUSED]

    def test_an_unmarked_tick_outlives_those_that_follow(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 1))
        for number in range(2, 60):
            claimed(schedule, term, tick(group, number))
            schedule.mark_ticks([tick(group, number)])
        assert [row.tick for row in schedule.unmarked(group)] == [tick(group, 1)]

    def test_of_many_claims_on_one_instant_one_row_stands(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group, length=LONG)
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(claimed, schedule, term, tick(group, number % 4)) for number in range(32)]
        assert all(each.result()[0] in {Claimed.GRANTED, Claimed.REFUSED} for each in asked)
        instants = [row.tick.instant for row in schedule.unmarked(group)]
        assert instants == sorted(set(instants))
        assert instants[-1] == 3 * SECOND

    def test_names_may_be_anything(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        names = ["mail|all", "отчёт", "a:b", "{x}", "with 'quotes'", "x" * 200]
        assert claimed(schedule, term, *[tick(group, 10, name=name) for name in names]) == [Claimed.GRANTED] * len(
            names
        )
        assert {row.tick.name for row in schedule.unmarked(group)} == set(names)
        assert set(schedule.last_ticks(group, names)) == set(names)

    def test_what_comes_next_is_known_of_each_entry_also_of_a_rare_one(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        rare = claim_of(tick(group, 1, name="rare"), state=TickState.SEEN, following=90 * SECOND)
        over = claim_of(tick(group, 1, name="over"), state=TickState.SKIPPED)
        schedule.claim_ticks(term, [rare, over])
        for number in range(1, 40):
            schedule.claim_ticks(term, [claim_of(tick(group, number), following=(number + 1) * SECOND)])
        found = [row for row in schedule.coming(limit=10_000) if row.tick.group == group]
        assert [(row.tick.name, row.following) for row in found] == [("report", 40 * SECOND), ("rare", 90 * SECOND)]
        assert len(schedule.coming(limit=1)) == 1

    def test_recent_ticks_are_there_for_people(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 10), tick(group, 11))
        schedule.mark_ticks([tick(group, 10)])
        recent = [row for row in schedule.recent(limit=10_000) if row.tick.group == group]
        states = [(row.tick.instant // SECOND, row.state) for row in recent]
        assert states == [(11, TickState.CLAIMED), (10, TickState.SENT)]
