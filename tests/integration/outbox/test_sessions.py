"""`once.outbox`: messages go with a session's transaction, with a body's, or with one of their own."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from celery import Celery
from sqlalchemy.orm import Session, scoped_session, sessionmaker

import effectonce
from effectonce import EffectOnce, Leased, OutboxUnsuitable, Transactional
from tests.integration.outbox.conftest import Office, orders


class Boom(Exception):
    """Something breaks."""


@pytest.fixture
def receipt(office: Office) -> Any:
    """The task that is sent."""

    @office.app.task(name="receipt")
    def receipt(number: Any) -> Any:
        return number

    return receipt


@pytest.fixture
def session(office: Office) -> Iterator[Session]:
    """A session of the caller's own."""
    with Session(office.engine) as session:
        yield session


def test_a_callers_transaction_that_is_rolled_back_sends_nothing(
    office: Office, receipt: Any, session: Session
) -> None:
    """A49."""
    with office.once.outbox(session):
        session.execute(orders.insert().values(number=1))
        result = receipt.delay(1)
    session.rollback()
    assert result.id
    assert (office.numbers, office.arguments(), office.waiting()) == ([], [], [])


def test_a_callers_commit_sends_after_it(office: Office, receipt: Any, session: Session) -> None:
    """A44, A47."""
    with office.once.outbox(session):
        session.execute(orders.insert().values(number=1))
        receipt.delay(1)
        assert office.arguments() == []
    receipt.delay("outside")
    assert office.arguments() == [["outside"]]
    session.commit()
    assert (office.numbers, office.arguments(), office.waiting()) == ([1], [[1]], [])


def test_a_commit_inside_the_context_is_followed_by_the_next_transaction(
    office: Office, receipt: Any, session: Session
) -> None:
    with office.once.outbox(session):
        receipt.delay("sent before the session did anything")
        session.execute(orders.insert().values(number=1))
        session.commit()
        receipt.delay("lost")
        session.execute(orders.insert().values(number=2))
        session.rollback()
        receipt.delay("kept")
        session.commit()
    assert office.numbers == [1]
    assert office.arguments() == [["sent before the session did anything"], ["kept"]]


def test_a_rolled_back_savepoint_takes_its_messages_along(office: Office, receipt: Any, session: Session) -> None:
    with office.once.outbox(session), session.begin():
        receipt.delay("before")
        with contextlib.suppress(Boom), session.begin_nested():
            receipt.delay("lost")
            raise Boom
        with session.begin_nested():
            receipt.delay("kept")
    assert office.arguments() == [["before"], ["kept"]]


def test_what_an_orm_event_sends_while_the_commit_flushes_goes_along(
    office: Office, receipt: Any, session: Session
) -> None:
    class Order:
        """A mapped order."""

    registry = sa.orm.registry()
    registry.map_imperatively(Order, orders)
    sa.event.listen(Order, "after_insert", lambda _mapper, _connection, order: receipt.delay(order.number))
    order = Order()
    order.number = 7  # type: ignore[attr-defined]
    with office.once.outbox(session):
        session.add(order)
        session.commit()
    registry.dispose()
    assert office.arguments() == [[7]]


def test_a_session_that_is_closed_without_a_commit_sends_nothing(office: Office, receipt: Any) -> None:
    with Session(office.engine) as session, office.once.outbox(session):
        session.execute(orders.insert().values(number=1))
        receipt.delay(1)
    assert (office.arguments(), office.waiting()) == ([], [])


def test_a_registrys_session_can_be_given(office: Office, receipt: Any) -> None:
    registry = scoped_session(sessionmaker(office.engine))
    with office.once.outbox(registry):
        registry.execute(orders.insert().values(number=1))
        receipt.delay(1)
    registry.commit()
    registry.remove()
    assert office.arguments() == [[1]]


def test_without_a_session_all_go_together_or_none(office: Office, receipt: Any) -> None:
    with contextlib.suppress(Boom), office.once.outbox():
        receipt.delay("lost")
        raise Boom
    assert office.arguments() == []
    with office.once.outbox():
        receipt.delay(1)
        receipt.delay(2)
        assert office.arguments() == []
    assert office.arguments() == [[1], [2]]


def test_in_a_body_the_context_is_the_bodys_transaction(office: Office, receipt: Any) -> None:
    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int, how: str) -> None:
        given = {"none": None, "its session": office.once.session}[how]
        with effectonce.outbox(given):
            receipt.delay(number)
        if number < 0:
            raise Boom

    for number, how in enumerate(("none", "its session"), 1):
        with pytest.raises(Boom):
            order(-number, how)
        order(number, how)
    assert office.arguments() == [[1], [2]]


def test_in_a_body_without_a_transaction_the_context_has_its_own(office: Office, receipt: Any) -> None:
    @office.app.task(once=Leased("order:{number}"))
    def order(number: int) -> None:
        with contextlib.suppress(Boom), office.once.outbox():
            receipt.delay("lost")
            raise Boom
        with office.once.outbox():
            receipt.delay(number)

    order(1)
    assert office.arguments() == [[1]]


def test_a_guarded_call_inside_a_context_keeps_its_messages_with_its_own_work(
    office: Office, receipt: Any, session: Session
) -> None:
    @office.app.task(once=Transactional("order:{number}"))
    def order(number: int) -> None:
        receipt.delay(number)

    with office.once.outbox(session):
        receipt.delay("lost")
        order(1)
    session.rollback()
    assert office.arguments() == [[1]]


def test_a_session_of_another_database_is_refused(office: Office) -> None:
    engine = sa.create_engine("sqlite:///elsewhere.sqlite")
    with Session(engine) as session, pytest.raises(OutboxUnsuitable, match="another database"):
        office.once.outbox(session).__enter__()
    with pytest.raises(OutboxUnsuitable, match="not str"):
        office.once.outbox("session").__enter__()
    engine.dispose()


def test_a_ledger_that_is_no_sql_database_has_no_outbox() -> None:
    plain = Celery(broker="memory://", set_as_current=False)
    once = EffectOnce(plain, ledger="memory://outbox")
    with pytest.raises(OutboxUnsuitable, match="not a SQL database"):
        once.outbox().__enter__()
    plain.close()
