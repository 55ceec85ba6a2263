"""What a `Transactional` body sends goes with its work: with the commit, or not at all."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from celery import chain, chord, group
from celery.app.trace import build_tracer
from celery.exceptions import Ignore

from effectonce import Leased, Transactional
from tests.integration.outbox.conftest import Office, orders


class Boom(Exception):
    """The body breaks."""


def test_a_body_that_fails_after_it_sent_has_sent_nothing(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int) -> None:
        office.once.session.execute(orders.insert().values(number=number))
        receipt.delay(number)
        raise Boom

    with pytest.raises(Boom):
        order(1)
    assert office.numbers == []
    assert office.arguments() == []
    assert office.waiting() == []


def test_a_body_sends_when_it_commits_and_leaves_nothing_behind(office: Office) -> None:
    receipt = _receipt(office)
    seen: list[int] = []

    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int) -> None:
        office.once.session.execute(orders.insert().values(number=number))
        receipt.delay(number)
        seen.append(len(office.arrived()))

    order(1)
    assert seen == [0], "nothing leaves before the commit"
    assert office.numbers == [1]
    assert office.arguments() == [[1]]
    assert office.waiting() == []


def test_every_way_to_send_goes_with_the_transaction(office: Office) -> None:
    receipt = _receipt(office)
    ways = {
        "delay": lambda: receipt.delay(1),
        "apply_async": lambda: receipt.apply_async((2,), countdown=60),
        "send_task": lambda: office.app.send_task(receipt.name, (3,)),
        "chain": lambda: chain(receipt.si(4), receipt.si(5)).apply_async(),
        "group": lambda: group(receipt.si(6), receipt.si(7)).apply_async(),
        "chord": lambda: chord([receipt.si(8), receipt.si(9)])(receipt.si(10)),
        "chunks": lambda: receipt.chunks([(11,), (12,), (13,)], 2).apply_async(),
    }

    @office.app.task(once=Transactional("send:{way}:{fail}"))
    def send(way: str, *, fail: bool) -> None:
        ways[way]()
        if fail:
            raise Boom

    for way in ways:
        with pytest.raises(Boom):
            send(way, fail=True)
        assert (way, office.arrived()) == (way, [])
        send(way, fail=False)
        assert len(office.arrived()) == {"group": 2, "chord": 2, "chunks": 2}.get(way, 1), way
        assert office.waiting() == []


def test_a_replacement_goes_with_the_work_of_the_replaced(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(bind=True, once=Transactional("order:{number}"))
    def order(self: Any, number: int, *, fail: bool) -> Any:
        office.once.session.execute(orders.insert().values(number=number))
        if fail:
            with contextlib.suppress(Ignore):
                self.replace(receipt.si(number))
            raise Boom
        return self.replace(receipt.si(number))

    assert _deliver(office, order, 1, fail=True) == "FAILURE"
    assert (office.numbers, office.arguments()) == ([], [])
    assert _deliver(office, order, 2, fail=False) == "IGNORED"
    assert (office.numbers, office.arguments()) == ([2], [[2]])


def test_a_savepoint_that_is_rolled_back_takes_its_messages_along(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int) -> None:
        session, connection = office.once.session, office.once.connection
        receipt.delay("before")
        with contextlib.suppress(Boom), session.begin_nested():
            receipt.delay("lost: the session has touched nothing yet")
            session.execute(orders.insert().values(number=100))
            receipt.delay("lost")
            with session.begin_nested():
                receipt.delay("lost: released inside")
            raise Boom
        with session.begin_nested():
            receipt.delay("kept")
        with contextlib.suppress(Boom), connection.begin_nested():
            receipt.delay("lost: the connection's own")
            raise Boom
        with connection.begin_nested():
            receipt.delay("kept too")
        session.execute(sa.text("savepoint mine"))
        receipt.delay("lost: the caller's own words")
        session.execute(sa.text("rollback to savepoint mine"))
        session.execute(orders.insert().values(number=number))
        receipt.delay("after")

    order(1)
    assert office.numbers == [1]
    assert office.arguments() == [["before"], ["kept"], ["kept too"], ["after"]]


def test_a_session_that_is_rolled_back_in_the_body_takes_its_messages_along(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int) -> None:
        session = office.once.session
        session.execute(orders.insert().values(number=100))
        receipt.delay("lost")
        session.rollback()
        session.execute(orders.insert().values(number=number))
        receipt.delay("kept")
        session.commit()
        receipt.delay("kept too")

    order(1)
    assert office.numbers == [1]
    assert office.arguments() == [["kept"], ["kept too"]]


def test_a_guarded_call_inside_a_body_sends_with_the_whole_or_not_at_all(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(once=Transactional("item:{number}"))
    def item(number: int) -> None:
        receipt.delay(number)
        if number == 2:
            raise Boom

    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int) -> None:
        item(1)
        with pytest.raises(Boom):
            item(2)
        item(3)

    order(1)
    assert office.arguments() == [[1], [3]]


def test_a_remembered_failure_sends_nothing(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(once=Transactional("order:{number}", remember=(Boom,)))
    def order(number: int) -> None:
        receipt.delay(number)
        raise Boom

    for _ in range(2):
        with pytest.raises(Boom):
            order(1)
    assert office.arrived() == []


def test_a_body_outside_of_transactions_sends_at_once(office: Office) -> None:
    receipt = _receipt(office)
    seen: list[int] = []

    @office.app.task(once=Leased("order:{number}"))
    def order(number: int) -> None:
        receipt.delay(number)
        seen.append(len(office.arrived()))

    order(1)
    assert seen == [1]


def test_the_messages_of_a_body_cost_one_statement_before_its_commit(office: Office) -> None:
    receipt = _receipt(office)

    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int, sends: int) -> None:
        for nth in range(sends):
            receipt.delay(nth)

    order(0, 0)
    with _statements(office) as none:
        order(1, 0)
    with _statements(office) as some:
        order(2, 3)
    stored = [each for each in some if each.startswith("insert into effectonce_outbox")]
    assert len(none) == 1
    assert len(stored) == (1 if office.engine.dialect.name == "postgresql" else 3)
    assert len(some) == len(none) + len(stored) + 1, "and one that strikes off what was sent"


def _receipt(office: Office) -> Any:
    @office.app.task
    def receipt(number: Any) -> Any:
        return number

    return receipt


def _deliver(office: Office, task: Any, *args: Any, **kwargs: Any) -> str:
    """One delivery through Celery's own tracer: how it ended."""
    office.app.finalize()
    task_id = uuid.uuid4().hex
    info = {"exchange": "", "routing_key": "celery", "redelivered": False, "priority": 0}
    request = {"id": task_id, "task": task.name, "delivery_info": info, "retries": 0}
    _, ending, *_ = build_tracer(task.name, task, app=office.app)(task_id, list(args), kwargs, request)
    return "SUCCESS" if ending is None else str(ending.state)


@contextlib.contextmanager
def _statements(office: Office) -> Iterator[list[str]]:
    """What is said to a database while it lasts, but for what begins a transaction of SQLite."""
    said: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if not statement.startswith("BEGIN"):
            said.append(statement.replace('"', ""))

    sa.event.listen(office.engine, "before_cursor_execute", note)
    yield said
    sa.event.remove(office.engine, "before_cursor_execute", note)
