"""`once.outbox` with an AsyncSession: stored in its commit, sent by a thread; the event loop waits for no broker."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession, async_scoped_session, async_sessionmaker, create_async_engine

from effectonce.lab.process_tree import wait_until
from tests.integration.outbox.conftest import Office, orders


@pytest.fixture
def office(offices: Callable[..., Office], postgresql_url: str, redis_url: str) -> Office:
    """An app whose ledger has an asynchronous driver too."""
    return offices(redis_url, postgresql_url)


@pytest.fixture
def receipt(office: Office) -> Any:
    """The task that is sent."""

    @office.app.task(name="receipt")
    def receipt(number: Any) -> Any:
        return number

    return receipt


def run(office: Office, work: Callable[[AsyncSession], Awaitable[None]]) -> None:
    """Do *work* with an asynchronous session of the ledger's database."""

    async def main() -> None:
        engine = create_async_engine(office.engine.url)
        async with AsyncSession(engine) as session:
            await work(session)
        await engine.dispose()

    asyncio.run(main())


def test_a_commit_sends_and_a_rollback_does_not(office: Office, receipt: Any) -> None:
    threads = []
    plain = office.once.dispatcher.dispatch

    def dispatch(stored: Any) -> None:
        threads.append(threading.current_thread().name)
        plain(stored)

    vars(office.once.dispatcher)["dispatch"] = dispatch

    async def work(session: AsyncSession) -> None:
        async with office.once.outbox(session):
            await session.execute(orders.insert().values(number=1))
            receipt.delay("lost")
            await session.rollback()
            await session.execute(orders.insert().values(number=2))
            receipt.delay("kept")
            async with session.begin_nested() as savepoint:
                receipt.delay("lost with its savepoint")
                await savepoint.rollback()
        await session.commit()

    run(office, work)
    assert wait_until(lambda: office.waiting() == [], seconds=30)
    assert (office.numbers, office.arguments()) == ([2], [["kept"]])
    assert threads == ["effectonce-dispatch"]


def test_a_registry_of_asynchronous_sessions_can_be_given(office: Office, receipt: Any) -> None:
    async def main() -> None:
        engine = create_async_engine(office.engine.url)
        registry = async_scoped_session(async_sessionmaker(engine), scopefunc=asyncio.current_task)
        with office.once.outbox(registry):
            receipt.delay(1)
        await registry.commit()
        await registry.remove()
        await engine.dispose()

    asyncio.run(main())
    assert wait_until(lambda: office.waiting() == [], seconds=30)
    assert office.arguments() == [[1]]
