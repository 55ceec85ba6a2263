"""What is sent while a session of the caller's own is in a transaction (``effectonce_send_in_transaction``)."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from celery.app.trace import build_tracer
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session, registry, sessionmaker

from effectonce import Leased, SentInTransaction, SettingsInvalid
from effectonce.lab.process_tree import wait_until
from tests.integration.outbox.conftest import Office, metadata, orders


class Order:
    """A row of orders."""

    def __init__(self, number: int) -> None:
        self.number = number


registry().map_imperatively(Order, orders)


class Boom(Exception):
    """The work breaks."""


@pytest.fixture
def maker(sqlite_url: str) -> sessionmaker[Session]:
    """What makes the project's sessions; the ledger is given as this."""
    return sessionmaker(sa.create_engine(sqlite_url))


@pytest.fixture
def open_office(offices: Callable[..., Office], maker: sessionmaker[Session]) -> Callable[..., Office]:
    """An app with a guarded and a plain task."""

    def opened(ledger: Any = maker, **settings: Any) -> Any:
        office: Any = offices("memory://", ledger, **settings)
        office.app.conf.task_default_queue = office.queue = office.app.main
        office.guarded = office.app.task(_echo, name=f"{office.queue}.guarded", once=Leased("echo:{number}"))
        office.plain = office.app.task(_other, name=f"{office.queue}.plain")
        return office

    return opened


def _echo(number: Any) -> Any:
    return number


def _other(number: Any) -> Any:
    return number


def test_a_guarded_task_goes_with_the_transaction_and_another_one_at_once(
    open_office: Callable[..., Any], maker: sessionmaker[Session]
) -> None:
    office = open_office()
    with maker() as session:
        session.add_all([])
        session.execute(orders.insert().values(number=1))
        office.guarded.delay("kept")
        office.plain.delay("plain")
        with pytest.raises(Boom), session.begin_nested():
            _send_and_break(office)
        assert office.arguments(office.queue) == [["plain"]]
        session.commit()
        assert office.arguments(office.queue) == [["kept"]]
        session.execute(orders.insert().values(number=2))
        office.guarded.delay("rolled back")
        session.rollback()
    office.guarded.delay("outside")
    assert office.arguments(office.queue) == [["outside"]]
    assert (office.numbers, office.waiting()) == ([1], [])


def test_a_session_that_has_only_read_holds_nothing_back(
    open_office: Callable[..., Any], maker: sessionmaker[Session]
) -> None:
    """It is often closed without a commit, which would take the message along."""
    office = open_office()
    with maker() as session:
        session.execute(sa.select(orders.c.id))
        session.execute(sa.text("select 1"))
        office.guarded.delay("sent")
        assert office.arguments(office.queue) == [["sent"]]
        session.add(Order(number=7))
        office.guarded.delay("with the row, before it is flushed")
        session.flush()
        office.guarded.delay("with the row")
        assert office.arguments(office.queue) == []
        session.commit()
        assert len(office.arguments(office.queue)) == 2
        session.execute(sa.select(orders.c.id))
        office.guarded.delay("sent again")
    assert (office.arguments(office.queue), office.numbers) == ([["sent again"]], [7])


def _send_and_break(office: Any) -> None:
    office.guarded.delay("lost with its savepoint")
    raise Boom


@pytest.mark.parametrize(
    ("said", "before", "after"),
    [("outbox", [], [["g"], ["p"]]), ("on_commit", [], [["g"], ["p"]]), ("now", [["g"], ["p"]], [])],
)
def test_the_setting_says_it_for_every_task(
    open_office: Callable[..., Any], maker: sessionmaker[Session], said: str, before: Any, after: Any
) -> None:
    office = open_office(send_in_transaction=said)
    with maker.begin() as session:
        session.execute(orders.insert().values(number=1))
        office.guarded.delay("g")
        office.plain.delay("p")
        assert office.arguments(office.queue) == before
        assert office.once.bound_session() is session
    assert office.arguments(office.queue) == after
    assert office.waiting() == []


def test_raise_refuses_what_is_sent_in_a_transaction_and_nothing_else(
    open_office: Callable[..., Any], maker: sessionmaker[Session]
) -> None:
    office = open_office(send_in_transaction="raise")
    with maker() as session:
        session.execute(orders.insert().values(number=1))
        for task in (office.guarded, office.plain):
            with pytest.raises(SentInTransaction, match=r"once\.outbox"):
                task.delay(1)
        with office.once.outbox(session):
            office.plain.delay(2)
        session.commit()
    office.plain.delay(3)
    assert office.arguments(office.queue) == [[2], [3]]


def test_sessions_of_another_database_send_after_their_commit(
    open_office: Callable[..., Any], tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    office = open_office()
    other = sa.create_engine(f"sqlite:///{tmp_path / 'other.sqlite'}")
    metadata.create_all(other)
    makers = sessionmaker(other)
    office.once.bind(makers)
    with makers() as session:
        session.execute(orders.insert().values(number=1))
        office.guarded.delay("lost")
        session.rollback()
        session.execute(orders.insert().values(number=1))
        office.guarded.delay("kept")
        with pytest.raises(Boom), session.begin_nested():
            _send_and_break(office)
        assert (office.arguments(office.queue), office.waiting()) == ([], [])
        session.commit()
        assert office.arguments(office.queue) == [["kept"]]
        office.app.conf.broker_url = "redis://127.0.0.1:1/0"
    other.dispose()
    assert caplog.records == [record for record in caplog.records if record.levelno < logging.ERROR]


def test_asynchronous_sessions_can_be_bound_too(offices: Callable[..., Office], postgresql_url: str) -> None:
    office: Any = offices("memory://", postgresql_url)
    office.app.conf.task_default_queue = office.queue = office.app.main
    guarded = office.app.task(_echo, name=f"{office.queue}.guarded", once=Leased("echo:{number}"))

    async def story() -> None:
        engine = create_async_engine(office.engine.url)
        makers = async_sessionmaker(engine)
        office.once.bind(makers)
        async with makers() as session:
            await session.execute(orders.insert().values(number=1))
            guarded.delay("lost")
            await session.rollback()
            await session.execute(orders.insert().values(number=2))
            guarded.delay("kept")
            assert office.arguments(office.queue) == []
            await session.commit()
        await engine.dispose()

    asyncio.run(story())
    assert wait_until(lambda: office.waiting() == [], seconds=30)
    assert (office.numbers, office.arguments(office.queue)) == ([2], [["kept"]])


def test_a_body_is_asked_first_and_a_guards_own_session_is_not_the_last_word(
    open_office: Callable[..., Any], maker: sessionmaker[Session]
) -> None:
    """`effect.transaction()` commits only while its claim holds; what a Leased body sends goes out at once."""
    office = open_office()

    @office.app.task(name=f"{office.queue}.body", once=Leased("body:{number}"))
    def body(number: int) -> None:
        with office.once.effect.transaction() as session:
            session.execute(orders.insert().values(number=number))
            office.guarded.delay(number)
            assert office.arguments(office.queue) == [[number]]

    body(5)
    assert (office.numbers, office.arguments(office.queue)) == ([5], [])


def test_a_retry_is_never_rolled_back_with_its_body(
    open_office: Callable[..., Any], maker: sessionmaker[Session]
) -> None:
    office = open_office(send_in_transaction="outbox")

    @office.app.task(name=f"{office.queue}.again", bind=True, max_retries=1)
    def again(self: Any) -> None:
        with maker.begin() as session:
            session.execute(orders.insert().values(number=1))
            raise self.retry(countdown=0)

    office.app.finalize()
    request = {"id": "the-id", "task": again.name, "delivery_info": {}, "retries": 0}
    build_tracer(again.name, again, app=office.app)("the-id", [], {}, request)
    (message,) = office.arrived(office.queue)
    assert (message.headers["id"], message.headers["retries"], office.numbers) == ("the-id", 1, [])


def test_what_cannot_be_bound_and_what_cannot_be_said_is_refused(open_office: Callable[..., Any]) -> None:
    office = open_office()
    with pytest.raises(TypeError, match="sessionmaker"):
        office.once.bind(office.engine)
    with pytest.raises(SettingsInvalid, match="send_in_transaction"):
        open_office(send_in_transaction="later")
