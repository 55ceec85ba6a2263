"""The history: what was not ordinary is written down with its cause, and what was ordinary costs nothing."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.domain.outbox import RELAYED, Stored, marked_as_relayed, may_have_gone_out
from effectonce.events import Event, Name
from effectonce.ports.history import Happened
from effectonce.runtime.historian import MOST, Historian
from effectonce.runtime.pruner import trim_history
from effectonce.stores.sql.history import SqlHistory
from effectonce.stores.sql.ledger import SqlLedger
from tests.integration.seeing.conftest import House
from tests.integration.seeing.messages import message

RELAYED_HEADER: dict[str, Any] = {RELAYED: 1}
REPLAYED, DEFERRED = "effect.replayed", "effect.deferred"


def test_an_ordinary_effect_leaves_no_row_and_is_counted(house: House) -> None:
    house.deliver("pay", "A")
    assert house.history("pay:A") == []
    assert [(each.name, each.number) for each in house.once.ledger.history.tallies(minutes=5)] == [  # type: ignore[attr-defined]
        ("effect.completed", 1)
    ]


def test_a_second_message_of_one_intent_is_the_callers_repeat(house: House) -> None:
    house.deliver("pay", "A", id="one")
    house.deliver("pay", "A", id="two")
    (row,) = house.history("pay:A")
    assert (row.name, row.cause, row.task_id, row.facts["first"]) == (REPLAYED, "caller", "two", "one")


def test_a_redelivery_of_finished_work_is_one(house: House) -> None:
    house.deliver("pay", "A", id="one")
    house.deliver("pay", "A", id="one", redelivered=True)
    assert house.causes("pay:A") == [(REPLAYED, "redelivery")]


def test_a_redelivery_while_the_holder_works_is_an_expired_visibility(house: House) -> None:
    house.hold("mail", "A", id="one")
    house.deliver("mail", "A", id="one", redelivered=True)
    assert house.causes("mail:A") == [(DEFERRED, "visibility")]


def test_on_a_broker_without_a_visibility_timeout_it_is_a_redelivery(sqlite_url: str) -> None:
    house = House(sqlite_url, transport="amqp")
    house.hold("mail", "A", id="one")
    house.deliver("mail", "A", id="one", redelivered=True)
    assert house.causes("mail:A") == [(DEFERRED, "redelivery")]
    house.close()


def test_a_copy_that_was_put_off_carries_its_cause(house: House) -> None:
    held = house.hold("mail", "A", id="one")
    house.deliver("mail", "A", id="one", redelivered=True)
    headers = house.copies[-1]["headers"]
    house.once.ledger.release(held, retries=0, reset=True, keep=None)
    house.deliver("mail", "A", id="two")
    house.deliver("mail", "A", id="one", **headers)
    assert house.causes("mail:A")[-1] == (REPLAYED, "visibility")


@pytest.mark.parametrize("headers", [{"effectonce_tick": "2026-11-30T01:00:00Z"}, {"celery_beat_task": True}])
def test_a_tick_that_was_sent_twice_is_a_second_beats(house: House, headers: dict[str, Any]) -> None:
    house.deliver("pay", "A", id="one", **headers)
    house.deliver("pay", "A", id="one" if "effectonce_tick" in headers else "two", **headers)
    (seen,) = house.once.entries.find("pay:A") or house.once.entries.find(_only_key(house))
    house.once.write_history()
    assert [each.cause for each in house.once.entries.history(seen)] == ["beat"]


def _only_key(house: House) -> str:
    (entry,) = house.once.ledger.entries(state=None, limit=2)
    return entry.key


def test_what_a_relay_sends_again_says_so(house: House) -> None:
    house.deliver("pay", "A", id="one")
    house.deliver("pay", "A", id="one", **RELAYED_HEADER)
    assert house.causes("pay:A") == [(REPLAYED, "relay")]


def test_a_relay_marks_what_may_have_gone_out() -> None:
    stored = Stored(id=1, message=message("pay", headers='{"id": "one"}'), tries=1)
    assert may_have_gone_out(stored)
    assert json.loads(marked_as_relayed(stored).message.headers) == {"id": "one", RELAYED: 1}


def test_a_takeover_is_written_with_the_new_fence(house: House) -> None:
    held = house.hold("mail", "A", id="one")
    with house.once.ledger.source.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("update effectonce_entries set lease_until = 0")
    house.deliver("mail", "A", id="one", redelivered=True)
    (row,) = house.history("mail:A")
    assert (row.name, row.cause, row.fence > held.fence) == ("claim.taken_over", "takeover", True)


def test_other_arguments_under_one_key_are_written(house: House) -> None:
    house.deliver("pay", "A", 1)
    house.deliver("pay", "A", 2)
    assert house.causes("pay:A") == [("effect.reused", "caller")]


def test_a_persons_word_is_written_at_once_with_the_name(house: House) -> None:
    house.deliver("pay", "A")
    house.once.entries.by("anna").reopen("pay:A")
    (row,) = house.history("pay:A")
    assert (row.name, dict(row.facts)) == ("effect.reopened", {"was": "completed", "by": "anna"})


def test_a_storm_of_duplicates_is_a_few_rows(house: House) -> None:
    house.deliver("pay", "A", id="one")
    for _ in range(40):
        house.deliver("pay", "A", id="two")
    rows = house.history("pay:A")
    assert sum(row.times for row in rows) == 40
    assert len(rows) < 10


def test_outside_of_workers_nothing_is_written(sqlite_url: str) -> None:
    house = House(sqlite_url)
    house.once.records, house.once._observing = False, None
    task = house.app.tasks["pay"]
    assert task("A") == task("A")
    assert house.history("pay:A") == []
    house.close()


def test_a_ledger_of_an_older_schema_works_without_a_history(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.once.ledger.ping()
    with house.once.ledger.source.engine.begin() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("drop table effectonce_history")
    with caplog.at_level(logging.WARNING, "effectonce"):
        for _ in range(3):
            house.deliver("pay", "A")
            house.once.write_history()
    assert caplog.text.count("no tables for the history") == 1
    assert house.history("pay:A") == []


def test_a_process_holds_no_more_than_so_many_rows() -> None:
    told: list[int] = []

    class Counting:
        def record(self, happened: Any, _counted: Any) -> None:
            told.append(len(happened))

    historian = Historian(lambda _place: Counting())  # type: ignore[arg-type,return-value]
    historian._start = lambda: None  # type: ignore[method-assign]
    for number in range(MOST * 2):
        historian.note(Event(name=Name.EFFECT_REPLAYED, digest=number.to_bytes(16)))
    historian.write()
    assert told == [MOST]


@pytest.fixture(params=["sqlite_url", "postgresql_url", "mariadb_url"])
def ledger(request: pytest.FixtureRequest) -> Iterator[SqlLedger]:
    ledger = SqlLedger.open(request.getfixturevalue(request.param))
    ledger.create_schema()
    yield ledger
    ledger.close()


def _rows(history: SqlHistory, number: int) -> None:
    rows = [Happened(digest=b"d" * 16, name=REPLAYED, cause="caller", facts={"n": at}) for at in range(number)]
    history.record(rows, {(REPLAYED, "caller"): number})


def test_every_database_keeps_rows_and_counts(ledger: SqlLedger) -> None:
    history = ledger.history
    _rows(history, 3)
    _rows(history, 2)
    assert [row.facts["n"] for row in history.of(b"d" * 16, limit=4)] == [1, 2, 0, 1]
    newest = history.recent(limit=2)
    assert [row.id for row in history.recent(limit=9, before=newest[-1].id)] == [3, 2, 1]
    assert sum(each.number for each in history.tallies(minutes=5)) == 5


def test_the_history_is_bounded(ledger: SqlLedger) -> None:
    _rows(ledger.history, 30)
    assert trim_history(ledger, rows=10) == 20
    assert len(ledger.history.recent(limit=100)) == 10
    with ledger.source.engine.begin() as connection:
        connection.execute(sa.text("update effectonce_minutes set minute = minute - 100000"))
    trim_history(ledger, rows=10)
    with ledger.source.engine.connect() as connection:
        assert connection.execute(sa.text("select count(*) from effectonce_minutes")).scalar() == 0
