"""Sites to send requests to, one for each protocol; their endpoint is a plain function of the test."""

import asyncio
import io
import itertools
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from celery import Celery
from kombu.connection import Connection

from effectonce import EffectOnce
from effectonce.http import asgi, wsgi
from effectonce.stores.sql.ledger import SqlLedger

_numbers = itertools.count()
metadata = sa.MetaData()
orders = sa.Table("orders", metadata, sa.Column("id", sa.Integer, primary_key=True), sa.Column("number", sa.Integer))

Said = tuple[int, bytes] | tuple[int, Iterator[bytes]]


def echo(number: Any) -> Any:
    """The body of every task here."""
    return number


@dataclass(frozen=True, kw_only=True)
class Got:
    """What a caller got."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_replay(self) -> bool:
        return self.headers.get("idempotency-replayed") == "true"


@dataclass
class Site:
    """An app, its ledger, an endpoint, and what came of it."""

    ledger: Any
    endpoint: Callable[[bytes], Said] = field(init=False)
    bodies: int = 0

    def __post_init__(self) -> None:
        self.queue = f"site{next(_numbers)}"
        self.app = Celery(self.queue, broker="memory://", backend="cache+memory://", set_as_current=False)
        self.app.conf.task_default_queue = self.queue
        self.once = EffectOnce(self.app, ledger=self.ledger, lease_seconds=30)
        self.once.ledger.create_schema()
        self.receipt = self.app.task(echo, name=f"{self.queue}.receipt")
        self.endpoint = self.take_order
        self.engine: sa.Engine | None = None
        if isinstance(self.once.ledger, SqlLedger):
            self.engine = self.once.ledger.source.engine
            metadata.create_all(self.engine)

    def take_order(self, body: bytes) -> Said:
        """Write a row and send a message, in the request's transaction."""
        self.once.http.session().execute(orders.insert().values(number=int(body)))
        self.receipt.delay(int(body))
        return 201, b"order " + body

    def serve(self, body: bytes) -> Said:
        """What the app does with a request."""
        self.bodies += 1
        return self.endpoint(body)

    @property
    def numbers(self) -> list[int]:
        """The orders that are committed."""
        assert self.engine is not None
        with self.engine.connect() as connection:
            return list(connection.execute(sa.select(orders.c.number).order_by(orders.c.id)).scalars())

    def sent(self) -> list[Any]:
        """Take what the broker has."""
        found: list[Any] = []
        with Connection("memory://") as connection, closing(connection.SimpleQueue(self.queue)) as queue:
            while True:
                try:
                    message = queue.get(block=False)
                except queue.Empty:
                    return found
                message.ack()
                found.append(message)

    @property
    def receipts(self) -> list[Any]:
        """The arguments of what was sent."""
        return [message.payload[0][0] for message in self.sent()]

    def close(self) -> None:
        self.once.ledger.close()
        if self.engine is not None:
            self.engine.dispose()
        self.app.close()


class WsgiSite(Site):
    """Speaks WSGI."""

    def using(self, **terms: Any) -> "WsgiSite":
        """Put the middleware before it."""
        self.front = wsgi.IdempotencyMiddleware(self._app, once=self.once, **terms)
        return self

    def _app(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        status, said = self.serve(body)
        start_response(f"{status} Said", [("Content-Type", "text/plain"), ("X-Made-By", "site")])
        return iter([said]) if isinstance(said, bytes) else said

    def post(
        self,
        body: bytes | str = b"1",
        *,
        key: str | None = "k",
        caller: str = "Bearer ann",
        path: str = "/orders",
        content_type: str = "text/plain",
        cookie: str = "",
        method: str = "POST",
        at_start: Callable[[], None] = lambda: None,
    ) -> Got:
        body = body.encode() if isinstance(body, str) else body
        environ = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "CONTENT_TYPE": content_type,
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": io.BytesIO(body),
            **({"HTTP_IDEMPOTENCY_KEY": key} if key is not None else {}),
            **({"HTTP_AUTHORIZATION": caller} if caller else {}),
            **({"HTTP_COOKIE": cookie} if cookie else {}),
        }
        began: list[Any] = []

        def start_response(status: str, headers: Any, _exc_info: Any = None) -> None:
            at_start()
            began.extend((int(status.split(maxsplit=1)[0]), {name.lower(): value for name, value in headers}))

        pieces = self.front(environ, start_response)
        try:
            whole = b"".join(pieces)
        finally:
            getattr(pieces, "close", lambda: None)()
        return Got(status=began[0], headers=began[1], body=whole)


class AsgiSite(Site):
    """Speaks ASGI; its endpoint runs in a thread, as those of `def` do in FastAPI."""

    def using(self, **terms: Any) -> "AsgiSite":
        """Put the middleware before it."""
        self.front = asgi.IdempotencyMiddleware(self._app, once=self.once, **terms)
        return self

    async def _app(self, _scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        status, said = await self._run(body)
        headers = [(b"content-type", b"text/plain"), (b"x-made-by", b"site")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for piece in [said] if isinstance(said, bytes) else said:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _run(self, body: bytes) -> Said:
        return await asyncio.to_thread(self.serve, body)

    def post(self, *args: Any, **kwargs: Any) -> Got:
        return asyncio.run(self.ask(*args, **kwargs))

    async def ask(
        self,
        body: bytes | str = b"1",
        *,
        key: str | None = "k",
        caller: str = "Bearer ann",
        path: str = "/orders",
        content_type: str = "text/plain",
        cookie: str = "",
        method: str = "POST",
        at_start: Callable[[], None] = lambda: None,
    ) -> Got:
        """Send a request, in pieces."""
        body = body.encode() if isinstance(body, str) else body
        named = {"content-type": content_type, "idempotency-key": key, "authorization": caller, "cookie": cookie}
        headers = [(name.encode(), value.encode()) for name, value in named.items() if value]
        if key == "":
            headers.append((b"idempotency-key", b""))
        pieces = [body[at : at + 100_000] for at in range(0, len(body), 100_000)] or [b""]
        coming = iter(pieces)
        left = len(pieces)
        said: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            nonlocal left
            left -= 1
            return {"type": "http.request", "body": next(coming), "more_body": left > 0}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                at_start()
            said.append(message)

        scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        await self.front(scope, receive, send)
        start, *rest = said
        assert rest[-1].get("more_body", False) is False
        names = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return Got(status=start["status"], headers=names, body=b"".join(piece.get("body", b"") for piece in rest))
