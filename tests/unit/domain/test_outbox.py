"""Messages that wait for a transaction."""

import json
from typing import Any

import pytest

from effectonce.domain.outbox import (
    LIMIT,
    RELAYED,
    Later,
    Message,
    Stage,
    Stored,
    Stuck,
    after_refusal,
    marked_as_relayed,
    may_have_gone_out,
)


def message(headers: str = '{"id": "i"}', **options: Any) -> Message:
    return Message(
        task="t",
        task_id="i",
        exchange="",
        routing_key="celery",
        content_type="application/json",
        content_encoding="utf-8",
        body=b"[]",
        headers=headers,
        properties="{}",
        declares="[]",
        **options,
    )


@pytest.mark.parametrize(
    ("options", "stage", "for_relay"),
    [({}, Stage.READY, False), ({"due": 5.0}, Stage.PARKED, True), ({"order": "o"}, Stage.READY, True)],
)
def test_a_far_message_is_parked_and_one_with_an_order_is_left_to_a_relay(
    options: dict[str, Any], stage: Stage, for_relay: bool
) -> None:
    assert message(**options).stage is stage
    assert message(**options).is_for_relay is for_relay


@pytest.mark.parametrize(
    ("options", "tries", "may"),
    [({}, 1, True), ({"due": 5.0}, 1, False), ({"order": "o"}, 1, False), ({"due": 5.0}, 2, True), ({}, 2, True)],
)
def test_what_its_writer_or_an_earlier_relay_took_may_have_gone_out(
    options: dict[str, Any], tries: int, may: bool
) -> None:
    assert may_have_gone_out(Stored(id=1, message=message(**options), tries=tries)) is may


def test_a_message_that_may_have_gone_out_says_so_and_stays_what_it_was() -> None:
    marked = marked_as_relayed(Stored(id=7, message=message(), tries=3))
    assert json.loads(marked.message.headers) == {"id": "i", RELAYED: 1}
    assert (marked.id, marked.tries, marked.message.body, marked.message.task_id) == (7, 3, b"[]", "i")
    unreadable = Stored(id=8, message=message("no JSON"), tries=2)
    assert marked_as_relayed(unreadable) == unreadable


@pytest.mark.parametrize(
    ("tries", "pause"), [(1, 1.0), (2, 2.0), (5, 16.0), (9, 256.0), (LIMIT, None), (LIMIT + 1, None)]
)
def test_a_refused_message_is_tried_ever_more_slowly_and_then_set_aside(tries: int, pause: float | None) -> None:
    assert after_refusal(tries=tries) == (Stuck() if pause is None else Later(pause=pause))


def test_the_pause_has_an_end_where_the_tries_have_none() -> None:
    assert after_refusal(tries=10, limit=99) == Later(pause=300.0)
