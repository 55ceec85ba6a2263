"""Ticks and their messages in one commit: rules for a store that has an outbox beside its ticks."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from effectonce.domain.outbox import Message, Stored
from effectonce.domain.terms import Term
from effectonce.domain.ticks import Claimed, Tick, TickState
from effectonce.ports import ScheduleStore, is_storing
from effectonce.ports.outbox import OutboxStore
from effectonce.testing.conformance.outbox import new_message
from effectonce.testing.conformance.terms import ScheduleSuite, new_name, won
from effectonce.testing.conformance.ticking import SECOND, claim_of, claimed, tick


def stored(
    store: ScheduleStore, term: Term, *ticks: Tick, messages: Sequence[Message] = ()
) -> tuple[list[Claimed], list[Stored]]:
    """Claim ticks as stored, each with a message; give the answers and what is to be sent."""
    assert is_storing(store)
    claims = [claim_of(each, state=TickState.STORED) for each in ticks]
    sent = messages or [new_message(task_id=each.task_id, due=None) for each in ticks]
    answers, to_send = store.claim_and_store(term, claims, [[each] for each in sent])
    return list(answers), list(to_send)


class StoringTicks(ScheduleSuite):
    """Rules about ticks and messages together."""

    @pytest.fixture
    def outbox(self) -> OutboxStore:
        """The outbox beside the ticks; give it in the subclass."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _emptied(self, request: pytest.FixtureRequest) -> None:
        outbox = request.getfixturevalue("outbox")
        outbox.strike(outbox.waiting(stage=None, limit=100_000))

    def waiting(self, outbox: OutboxStore) -> list[str]:
        """The tasks whose messages wait."""
        return [each.message.task_id for each in outbox.waiting(stage=None, limit=1000)]

    def test_a_granted_tick_and_its_message_stand_together(self, schedule: ScheduleStore, outbox: OutboxStore) -> None:
        group = new_name()
        term = won(schedule, group)
        answers, to_send = stored(schedule, term, tick(group, 10))
        assert answers == [Claimed.GRANTED]
        assert [each.message.task_id for each in to_send] == [tick(group, 10).task_id] == self.waiting(outbox)
        assert [(row.tick, row.state) for row in schedule.unmarked(group)] == [(tick(group, 10), TickState.STORED)]
        schedule.mark_ticks([tick(group, 10)])
        assert schedule.unmarked(group) == []

    def test_of_what_is_refused_no_message_is_stored(self, schedule: ScheduleStore, outbox: OutboxStore) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 20))
        schedule.mark_ticks([tick(group, 20)])
        answers, to_send = stored(schedule, term, tick(group, 20), tick(group, 20, name="mail"), tick(group, 19))
        assert answers == [Claimed.REFUSED, Claimed.GRANTED, Claimed.REFUSED]
        assert self.waiting(outbox) == [tick(group, 20, name="mail").task_id]
        assert [each.message.task_id for each in to_send] == self.waiting(outbox)

    def test_a_stored_tick_is_granted_to_nobody_again(self, schedule: ScheduleStore, outbox: OutboxStore) -> None:
        """Its message is there: a second one would be a second send."""
        group = new_name()
        old = won(schedule, group)
        stored(schedule, old, tick(group, 10))
        schedule.resign(old)
        new = won(schedule, group)
        assert stored(schedule, new, tick(group, 10)) == ([Claimed.REFUSED], [])
        assert claimed(schedule, new, tick(group, 10)) == [Claimed.REFUSED]
        assert len(self.waiting(outbox)) == 1

    def test_a_term_that_is_over_stores_nothing(self, schedule: ScheduleStore, outbox: OutboxStore) -> None:
        """A38."""
        group = new_name()
        old = self.ended(schedule, group)
        assert stored(schedule, old, tick(group, 10)) == ([Claimed.FENCED], [])
        assert self.waiting(outbox) == []

    def test_a_tick_that_was_claimed_alone_can_get_its_message(
        self, schedule: ScheduleStore, outbox: OutboxStore
    ) -> None:
        group = new_name()
        term = won(schedule, group)
        claimed(schedule, term, tick(group, 10))
        assert stored(schedule, term, tick(group, 10))[0] == [Claimed.GRANTED]
        assert self.waiting(outbox) == [tick(group, 10).task_id]
        assert [row.state for row in schedule.unmarked(group)] == [TickState.STORED]

    def test_a_message_that_cannot_be_stored_leaves_no_tick(self, schedule: ScheduleStore, outbox: OutboxStore) -> None:
        group = new_name()
        term = won(schedule, group)
        bad = new_message(due=None, body=None)
        with pytest.raises(Exception, match=r".*"):
            stored(schedule, term, tick(group, 10), tick(group, 11), messages=[new_message(due=None), bad])
        assert schedule.last_ticks(group, ["report"]) == {}
        assert self.waiting(outbox) == []

    def test_of_many_that_store_one_instant_one_message_comes_of_it(
        self, schedule: ScheduleStore, outbox: OutboxStore
    ) -> None:
        group = new_name()
        term = won(schedule, group)
        with ThreadPoolExecutor(8) as threads:
            asked = [threads.submit(stored, schedule, term, tick(group, 10)) for _ in range(16)]
        answers = [each.result()[0][0] for each in asked]
        assert answers.count(Claimed.GRANTED) == 1
        assert self.waiting(outbox) == [tick(group, 10).task_id]

    def test_what_is_passed_over_needs_no_message(self, schedule: ScheduleStore) -> None:
        group = new_name()
        term = won(schedule, group)
        assert is_storing(schedule)
        skipped = claim_of(tick(group, 20), state=TickState.SKIPPED, missed=7)
        assert schedule.claim_and_store(term, [skipped], [()]) == ([Claimed.GRANTED], [])
        assert schedule.claim_and_store(term, [], []) == ([], [])
        assert schedule.last_ticks(group, ["report"])["report"].tick.instant == 20 * SECOND
