"""Sending what is stored: what a broker that is away, a refusal, and an answer that is lost do to a message."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from effectonce.domain.outbox import LIMIT, Later, Message, Stage, Stuck, after_refusal
from effectonce.errors import LedgerUnavailable
from effectonce.events import Event, Name
from effectonce.ports.outbox import BrokerAway
from effectonce.runtime.relay import Dispatcher, Elected, Relay
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.outbox import SqlOutbox


@dataclass
class Broker:
    """Takes messages, unless it is told otherwise."""

    arrived: list[str] = field(default_factory=list)
    refuses: set[str] = field(default_factory=set)
    away_after: int | None = None

    def send(self, messages: Sequence[Message]) -> Sequence[Exception | None]:
        answers: list[Exception | None] = []
        for message in messages:
            if self.away_after is not None and len(self.arrived) >= self.away_after:
                raise BrokerAway(sent=len(answers))
            refused = message.task in self.refuses
            if not refused:
                self.arrived.append(message.task)
            answers.append(ValueError("no such exchange") if refused else None)
        return answers


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqlLedger]:
    ledger = SqlLedger.open(f"sqlite:///{tmp_path / 'effects.sqlite'}")
    yield ledger
    ledger.close()


@pytest.fixture
def outbox(ledger: SqlLedger) -> SqlOutbox:
    return ledger.outbox


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def relay(outbox: SqlOutbox, broker: Broker, events: list[Event]) -> Relay:
    return Relay(lambda: outbox, broker, emit=events.append)


def due(task: str) -> Message:
    text = {"exchange": "", "routing_key": "celery", "content_type": "application/json", "content_encoding": "utf-8"}
    return Message(task=task, task_id=task, body=b"[]", headers="{}", properties="{}", declares="[]", due=1.0, **text)


def make_due(ledger: SqlLedger) -> None:
    with ledger.source.engine.begin() as connection:
        connection.exec_driver_sql("update effectonce_outbox set due = 0")


def test_what_is_due_is_sent_and_struck_off(
    relay: Relay, outbox: SqlOutbox, broker: Broker, events: list[Event]
) -> None:
    outbox.store([due("a"), due("b")])
    assert (relay.relay(), relay.relay()) == (2, 0)
    assert broker.arrived == ["a", "b"]
    assert outbox.waiting(stage=None, limit=9) == []
    assert [(event.name, event.facts) for event in events] == [(Name.OUTBOX_SENT, {"messages": 2})]


def test_a_broker_that_is_away_costs_a_message_nothing(
    relay: Relay, ledger: SqlLedger, outbox: SqlOutbox, broker: Broker, events: list[Event]
) -> None:
    outbox.store([due("a"), due("b"), due("c")])
    broker.away_after = 1
    for _ in range(LIMIT + 5):
        assert relay.relay() == 0
        make_due(ledger)
    assert [(each.message.task, each.tries, each.stage) for each in outbox.waiting(stage=None, limit=9)] == [
        ("b", 0, Stage.READY),
        ("c", 0, Stage.READY),
    ]
    assert [event.name for event in events] == [Name.OUTBOX_HELD_UP], "it is said once"
    broker.away_after = None
    assert relay.relay() == 2
    assert broker.arrived == ["a", "b", "c"]


def test_a_message_that_is_refused_again_and_again_is_stuck_and_holds_nobody_up(
    relay: Relay, ledger: SqlLedger, outbox: SqlOutbox, broker: Broker, events: list[Event]
) -> None:
    outbox.store([due("poison"), due("good")])
    broker.refuses = {"poison"}
    for _ in range(LIMIT):
        relay.relay()
        make_due(ledger)
    assert relay.relay() == 0
    assert broker.arrived == ["good"]
    (stuck,) = outbox.waiting(stage=Stage.STUCK, limit=9)
    assert stuck.error == "ValueError: no such exchange"
    assert [event.facts["why"] for event in events if event.name is Name.OUTBOX_STUCK] == [stuck.error]
    broker.refuses = set()
    assert (outbox.unstick(), relay.relay()) == (1, 1)
    assert broker.arrived == ["good", "poison"]


def test_a_refused_message_waits_longer_each_time() -> None:
    verdicts = [after_refusal(tries=tries) for tries in range(1, LIMIT + 1)]
    pauses = [verdict.pause for verdict in verdicts if isinstance(verdict, Later)]
    assert pauses == sorted(pauses)
    assert (pauses[0], verdicts[-1]) == (1.0, Stuck())


def test_a_dispatcher_never_raises_and_rests_after_a_silence(
    outbox: SqlOutbox, broker: Broker, events: list[Event]
) -> None:
    dispatcher = Dispatcher(lambda: outbox, broker, emit=events.append)
    plain = replace(due("a"), due=None)
    broker.away_after = 0
    stored = outbox.store([plain])
    dispatcher.dispatch(stored)
    broker.away_after = None
    dispatcher.dispatch(stored)
    assert broker.arrived == [], "a body does not wait for a broker that was away a moment ago"
    assert [each.message for each in outbox.waiting(stage=None, limit=9)] == [plain]


def test_a_dispatcher_that_cannot_strike_off_leaves_the_message(outbox: SqlOutbox, broker: Broker) -> None:
    class Gone(SqlOutbox):
        def strike(self, _sent: object) -> None:
            raise LedgerUnavailable(ledger="it", reason="gone")

    (stored,) = outbox.store([replace(due("a"), due=None)])
    Dispatcher(lambda: Gone(outbox._ledger), broker, emit=lambda _: None).dispatch([stored])
    assert (broker.arrived, len(outbox.waiting(stage=None, limit=9))) == (["a"], 1)


def test_a_seat_is_asked_for_rarely_and_given_up_at_the_end(outbox: SqlOutbox) -> None:
    relays = [Elected(lambda: outbox, seats=2, term=60) for _ in range(3)]
    assert [each.is_elected() for each in relays] == [True, True, False]
    relays[0].resign()
    late = Elected(lambda: outbox, seats=2, term=60)
    assert [late.is_elected(), relays[1].is_elected(), relays[2].is_elected()] == [True, True, False]
