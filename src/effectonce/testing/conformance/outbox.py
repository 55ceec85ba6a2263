"""The specification of an outbox, as tests that it passes unchanged.

Subclass `OutboxConformance` in a test module, with a fixture ``outbox`` that is an `effectonce.ports.OutboxStore`
whose messages are no one else's. Whatever waits there is removed before each test.
"""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from effectonce.domain.outbox import Message, Stage, Stored
from effectonce.ports.outbox import OutboxStore

LONG: Final = 3600.0
MOMENT: Final = 0.05
PATIENCE: Final = 20.0


def new_message(**changes: Any) -> Message:
    """A message whose writer leaves it to the relays, and which is due."""
    message = Message(
        task="receipt",
        task_id=secrets.token_hex(16),
        exchange="",
        routing_key="celery",
        content_type="application/json",
        content_encoding="utf-8",
        body=secrets.token_bytes(20) + b"\x00\xff",
        headers='{"id": "ü"}',
        properties='{"priority": 0}',
        declares="[]",
        due=1.0,
    )
    return replace(message, **changes)


class OutboxConformance:
    """All rules of an outbox."""

    @pytest.fixture(autouse=True)
    def _emptied(self, outbox: OutboxStore) -> None:
        outbox.strike(outbox.waiting(stage=None, limit=100_000))

    def test_what_is_stored_comes_out_as_it_went_in(self, outbox: OutboxStore) -> None:
        messages = [new_message(body=bytes(range(256)), order=f"order-{n}") for n in range(5)]
        assert outbox.store(messages) == []
        taken = outbox.take(10, hold=LONG)
        assert [replace(each.message, due=1.0) for each in taken] == messages
        assert {each.tries for each in taken} == {1}

    def test_a_writer_has_its_message_to_itself_for_a_while(self, outbox: OutboxStore) -> None:
        message = new_message(due=None)
        (stored,) = outbox.store([message])
        assert stored.message == message
        assert outbox.take(10, hold=LONG) == []
        outbox.strike([stored])
        assert outbox.waiting(stage=None, limit=10) == []

    def test_what_one_has_taken_the_others_pass_over_until_its_hold_ends(self, outbox: OutboxStore) -> None:
        outbox.store([new_message()])
        (first,) = outbox.take(10, hold=LONG)
        assert outbox.take(10, hold=LONG) == []
        outbox.give_back([first], pause=0)
        (again,) = outbox.take(10, hold=MOMENT)
        assert again.tries == 1, "a try that could not be made is not counted"
        (last,) = _soon(lambda: outbox.take(10, hold=LONG))
        assert (last.id, last.tries) == (first.id, 2)

    def test_the_oldest_goes_first_and_no_more_than_asked_for(self, outbox: OutboxStore) -> None:
        outbox.store([new_message(due=3.0, task="c"), new_message(due=1.0, task="a"), new_message(due=2.0, task="b")])
        assert [each.message.task for each in outbox.take(2, hold=LONG)] == ["a", "b"]
        assert [each.message.task for each in outbox.take(2, hold=LONG)] == ["c"]

    def test_a_parked_message_waits_for_its_instant_unless_it_is_asked_for(self, outbox: OutboxStore) -> None:
        outbox.store([new_message(due=time.time() + LONG)])
        assert outbox.take(10, hold=LONG) == []
        (waiting,) = outbox.waiting(stage=Stage.PARKED, limit=10)
        assert waiting.stage is Stage.PARKED
        assert len(outbox.take(10, hold=LONG, parked=True)) == 1

    def test_only_what_is_parked_can_be_cancelled(self, outbox: OutboxStore) -> None:
        outbox.store([new_message(due=time.time() + LONG, task_id="parked"), new_message(due=None, task_id="ready")])
        assert outbox.cancel(["parked", "ready", "unknown"]) == 1
        assert [each.message.task_id for each in outbox.waiting(stage=None, limit=10)] == ["ready"]

    def test_messages_of_one_order_are_taken_one_after_the_other(self, outbox: OutboxStore) -> None:
        messages = [new_message(order="a", task=f"a{n}") for n in range(3)] + [new_message(order="b", task="b0")]
        outbox.store(messages)
        seen = []
        while taken := outbox.take(10, hold=LONG):
            assert outbox.take(10, hold=LONG) == []
            seen.append([each.message.task for each in taken])
            outbox.strike(taken)
        assert seen == [["a0", "b0"], ["a1"], ["a2"]]

    def test_one_that_is_stuck_holds_up_its_order_and_nobody_else(self, outbox: OutboxStore) -> None:
        outbox.store([new_message(order="a", task="a0"), new_message(order="a", task="a1"), new_message(task="free")])
        taken = {each.message.task: each for each in outbox.take(10, hold=LONG)}
        outbox.refuse(taken["a0"], error="no such exchange", pause=None)
        outbox.strike([taken["free"]])
        assert outbox.take(10, hold=LONG) == []
        (stuck,) = outbox.waiting(stage=Stage.STUCK, limit=10)
        assert (stuck.message.task, stuck.error, stuck.tries) == ("a0", "no such exchange", 1)
        assert outbox.unstick() == 1
        assert [(each.message.task, each.tries) for each in outbox.take(10, hold=LONG)] == [("a0", 1)]

    def test_a_refused_message_comes_again_after_its_pause(self, outbox: OutboxStore) -> None:
        outbox.store([new_message()])
        (taken,) = outbox.take(10, hold=LONG)
        outbox.refuse(taken, error="not now", pause=MOMENT)
        (again,) = _soon(lambda: outbox.take(10, hold=LONG))
        assert (again.id, again.tries, again.error) == (taken.id, 2, "not now")

    def test_one_that_slept_does_not_speak_for_the_next_holder(self, outbox: OutboxStore) -> None:
        outbox.store([new_message()])
        (slept,) = outbox.take(10, hold=MOMENT)
        _soon(lambda: outbox.take(10, hold=LONG))
        outbox.refuse(slept, error="late", pause=None)
        assert outbox.depth().stuck == 0

    def test_the_rest_of_an_effect_can_be_taken(self, outbox: OutboxStore) -> None:
        mine, other = secrets.token_bytes(16), secrets.token_bytes(16)
        outbox.store([new_message(due=None, task="mine")], effect=mine)
        outbox.store([new_message(due=None, task="other")], effect=other)
        assert outbox.take_of(mine, hold=LONG, at_once=False) == []
        assert [each.message.task for each in outbox.take_of(mine, hold=LONG, at_once=True)] == ["mine"]

    def test_two_takers_at_once_share_and_never_take_the_same(self, outbox: OutboxStore) -> None:
        outbox.store([new_message() for _ in range(60)])
        found: list[list[Stored]] = [[], []]

        def take(nth: int) -> None:
            while taken := outbox.take(7, hold=LONG):
                found[nth] += taken

        threads = [threading.Thread(target=take, args=(nth,)) for nth in range(2)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(PATIENCE)
        found[0] += _rest(outbox)
        ids = [each.id for each in found[0] + found[1]]
        assert len(ids) == len(set(ids)) == 60

    def test_depth_counts_what_waits(self, outbox: OutboxStore) -> None:
        assert (outbox.depth().ready, outbox.depth().oldest) == (0, 0.0)
        outbox.store([new_message(due=None), new_message(due=time.time() + LONG), new_message()])
        (taken,) = outbox.take(10, hold=LONG)
        outbox.refuse(taken, error="never", pause=None)
        depth = outbox.depth()
        assert (depth.ready, depth.parked, depth.stuck) == (1, 1, 1)
        assert 0 <= depth.oldest < LONG

    def test_there_are_as_many_seats_as_asked_for(self, outbox: OutboxStore) -> None:
        first, second, third = (secrets.token_bytes(16) for _ in range(3))

        def sits(holder: bytes, seconds: float = LONG) -> bool:
            return outbox.elect(holder, seats=2, seconds=seconds)

        assert [sits(first), sits(second), sits(third), sits(first)] == [True, True, False, True]
        outbox.resign(second)
        assert [sits(third, MOMENT), sits(first)] == [True, True]
        assert _soon(lambda: sits(second))
        assert not sits(third)
        for holder in (first, second):
            outbox.resign(holder)


def _rest(outbox: OutboxStore) -> list[Stored]:
    """A taker may pass over rows that the other one was only looking at, and find nothing."""
    rest: list[Stored] = []
    while taken := outbox.take(100, hold=LONG):
        rest += taken
    return rest


def _soon(ask: Callable[[], Any]) -> Any:
    """What *ask* answers as soon as it is something."""
    end = time.monotonic() + PATIENCE
    while not (answer := ask()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return answer
