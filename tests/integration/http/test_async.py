"""Asynchronous endpoints: the `AsyncSession` that they are given is the request's transaction."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, async_sessionmaker, create_async_engine

from effectonce import OutboxUnsuitable
from effectonce.http.asgi import IdempotencyMiddleware
from effectonce.lab.process_tree import wait_until
from tests.integration.http.sites import AsgiSite, orders


class Boom(Exception):
    """The endpoint breaks."""


class AsyncSite(AsgiSite):
    """A site whose endpoint is a coroutine function."""

    make: Callable[[bytes], Awaitable[Any]]

    async def _run(self, body: bytes) -> Any:
        self.bodies += 1
        return await self.make(body)


@pytest.fixture
def site(postgresql_url: str) -> Any:
    site = AsyncSite(postgresql_url)

    async def take_order(body: bytes) -> Any:
        session: AsyncSession = site.once.http.session()
        await session.execute(orders.insert().values(number=int(body)))
        site.receipt.delay(int(body))
        await session.commit()
        return 201, b"order " + body

    site.make = take_order
    yield site
    site.close()


def run(site: Any, story: Callable[[], Awaitable[None]]) -> None:
    """Tell *story* while the middleware has an asynchronous engine of the ledger's database."""

    async def main() -> None:
        engine = create_async_engine(site.engine.url)
        try:
            site.using(sessions=async_sessionmaker(engine, expire_on_commit=False))
            await story()
        finally:
            await engine.dispose()

    asyncio.run(main())


def test_a_retried_request_makes_one_row_and_one_task(site: Any) -> None:
    async def story() -> None:
        seen: list[Any] = []
        first = await site.ask(at_start=lambda: seen.append(site.numbers))
        again = await site.ask()
        assert [(got.status, got.body, got.is_replay) for got in (first, again)] == [
            (201, b"order 1", False),
            (201, b"order 1", True),
        ]
        assert seen == [[1]], "committed before the first byte"

    run(site, story)
    assert wait_until(lambda: site.once.outbox_store().depth().ready == 0, seconds=30)
    assert (site.bodies, site.numbers, site.receipts) == (1, [1], [1])


def test_an_exception_after_the_endpoints_own_commit_leaves_nothing(site: Any) -> None:
    plain = site.make

    async def breaks(body: bytes) -> None:
        await plain(body)
        raise Boom

    async def story() -> None:
        site.make = breaks
        with pytest.raises(Boom):
            await site.ask()
        assert site.numbers == []
        site.make = plain
        assert (await site.ask()).status == 201

    run(site, story)
    assert wait_until(lambda: site.once.outbox_store().depth().ready == 0, seconds=30)
    assert (site.numbers, site.receipts) == ([1], [1])


@pytest.mark.parametrize(("status", "again"), [(402, True), (500, False)])
def test_a_refusal_undoes_the_work(site: Any, status: int, again: bool) -> None:
    plain = site.make

    async def refuses(body: bytes) -> Any:
        return status, (await plain(body))[1]

    async def story() -> None:
        site.make = refuses
        assert (await site.ask()).status == status
        assert (await site.ask()).is_replay is again

    run(site, story)
    assert (site.numbers, site.receipts, site.once.outbox_store().depth().ready) == ([], [], 0)


def test_twins_on_one_event_loop_make_one_row(site: Any) -> None:
    plain = site.make
    events: dict[str, asyncio.Event] = {}

    async def slow(body: bytes) -> Any:
        said = await plain(body)
        events["entered"].set()
        await events["told"].wait()
        return said

    async def story() -> None:
        events.update(entered=asyncio.Event(), told=asyncio.Event())
        site.make = slow
        first = asyncio.create_task(site.ask())
        await events["entered"].wait()
        assert (await site.ask()).status == 409
        events["told"].set()
        assert (await first).status == 201

    run(site, story)
    assert (site.bodies, site.numbers) == (1, [1])


def test_a_request_that_is_cancelled_leaves_nothing_and_frees_its_key(site: Any) -> None:
    plain = site.make
    arrived: Any = None

    async def hangs(body: bytes) -> Any:
        await plain(body)
        arrived.set()
        await asyncio.Event().wait()

    async def story() -> None:
        nonlocal arrived
        arrived = asyncio.Event()
        site.make = hangs
        task = asyncio.create_task(site.ask())
        await arrived.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert site.numbers == []
        site.make = plain
        assert (await site.ask()).status == 201

    run(site, story)
    assert site.numbers == [1]


def test_sessions_of_another_database_are_refused(site: Any) -> None:
    async def main() -> None:
        engine = create_async_engine(site.engine.url.set(database="elsewhere"))
        site.using(sessions=engine)
        with pytest.raises(OutboxUnsuitable, match="another database"):
            await site.ask()
        await engine.dispose()

    asyncio.run(main())


def test_fastapi_gives_the_session_to_endpoints_of_both_kinds(postgresql_url: str) -> None:
    site = AsyncSite(postgresql_url)

    def front(sessions: Any) -> Any:
        api = FastAPI()
        after: list[Any] = []

        @api.post("/sync")
        def sync(session: Annotated[Any, Depends(site.once.http.session)]) -> int:
            session.execute(orders.insert().values(number=1))
            return 1

        @api.post("/async")
        async def asynchronous(session: Annotated[Any, Depends(site.once.http.session)]) -> int:
            await session.execute(orders.insert().values(number=2))
            return 2

        api.add_middleware(IdempotencyMiddleware, once=site.once, sessions=sessions, required=True)
        return api, after

    async def main() -> None:
        engine: AsyncEngine = create_async_engine(site.engine.url) if site.engine else None  # type: ignore[assignment]
        for path, sessions in (("/sync", None), ("/async", engine)):
            site.front, _ = front(sessions)
            first, again = await site.ask(key=path, path=path), await site.ask(key=path, path=path)
            assert (first.status, again.status, again.is_replay) == (200, 200, True)
            assert (await site.ask(key=None, path=path)).status == 400
        await engine.dispose()

    try:
        asyncio.run(main())
        assert site.numbers == [1, 2]
    finally:
        site.close()
