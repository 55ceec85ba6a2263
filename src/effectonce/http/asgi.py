"""The ASGI middleware: FastAPI, Starlette, Quart and whatever else speaks ASGI over asyncio.

An answer is held back until it may leave. Where the endpoint works in the request's own transaction, that is when the
answer is whole: commit, then send; dependencies are cleaned up and background tasks run after it. Where the endpoint
has a session of its own, it is when the application has returned, so that what a framework commits while it cleans up
counts too.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from effectonce.app.http import Conversation
from effectonce.domain.idempotency import Meaning
from effectonce.http import answers
from effectonce.http.answers import Answer
from effectonce.http.bodies import CHUNK, Body, TooLarge
from effectonce.http.callers import caller_of, name_of
from effectonce.http.desk import Desk, Seen, Terms

T = TypeVar("T")
Message = Any
Scope = Any
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class IdempotencyMiddleware:
    """Lets requests under an `Idempotency-Key` take effect once.

    ``app.add_middleware(IdempotencyMiddleware, once=once)``. Options are those of `desk.Terms`.
    Raises SettingsInvalid for one that cannot be used.
    """

    def __init__(self, app: App, /, **terms: Any) -> None:
        self._app = app
        self._desk = Desk(Terms(**terms))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        seen = _seen(scope)
        key = self._desk.key_of(seen)
        if isinstance(key, Answer):
            await _give(send, key)
        elif key is None:
            await self._serve(self._desk.converse(seen, None, caller="", body=b""), scope, receive, send)
        else:
            await self._serve_under(key, seen, scope, receive, send)

    async def _serve_under(self, key: str, seen: Seen, scope: Scope, receive: Receive, send: Send) -> None:
        caller = self._caller(scope)
        body = Body(seen.content_type, limit=self._desk.terms.max_request_bytes)
        try:
            try:
                if not await _read(receive, body):
                    return  # the caller has gone before it had said everything
            except TooLarge:
                await _give(send, answers.too_large(self._desk.terms.max_request_bytes))
                return
            conversation = self._desk.converse(seen, key, caller=caller, body=body.end())
            await self._serve(conversation, scope, _again(body, receive), send)
        finally:
            body.file.close()

    async def _serve(self, conversation: Conversation, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = conversation.exchange
        reply = _Reply(self._desk, conversation, send)
        try:
            if conversation.key is not None:
                refusal = await _to_the_end(asyncio.to_thread(self._desk.admit, conversation))
                if refusal is not None:
                    await _give(send, refusal)
                    return
            with conversation.current():
                await self._app(scope, receive, reply.take)
            await reply.end()
        finally:
            if exchange.is_held or exchange.work is not None:
                await _to_the_end(_let_go(conversation))

    def _caller(self, scope: Scope) -> str:
        if self._desk.terms.caller is not None:
            return str(self._desk.terms.caller(scope))
        authorization = _values(scope, b"authorization")
        return caller_of(
            user=name_of(scope.get("user")),
            authorization=authorization[0] if authorization else None,
            has_cookies=bool(_values(scope, b"cookie")),
        )


class _Reply:
    """What the application says, until it may leave."""

    def __init__(self, desk: Desk, conversation: Conversation, send: Send) -> None:
        self._desk = desk
        self._conversation = conversation
        self._send = send
        self._start: Message | None = None
        self._pieces: list[bytes] = []
        self._length = 0
        self._is_whole = False
        self._passes = False
        self._is_settled = False

    async def take(self, message: Message) -> None:
        """Take one message of the application."""
        kind = message["type"]
        if self._passes:
            await self._send(message)
        elif kind == "http.response.start" and self._is_watched:
            self._start = message
        elif kind == "http.response.body" and self._start is not None:
            await self._take_piece(message)
        else:
            await self._pass_on(message)

    @property
    def _is_watched(self) -> bool:
        exchange = self._conversation.exchange
        return exchange.claim is not None or exchange.work is not None

    async def _take_piece(self, message: Message) -> None:
        piece = message.get("body", b"")
        self._pieces.append(piece)
        self._length += len(piece)
        if not message.get("more_body", False):
            self._is_whole = True
            if self._conversation.exchange.work is not None:
                await self._settle_and_give()
        elif self._length > self._desk.terms.max_response_bytes:
            await self._let_flow()

    async def _let_flow(self) -> None:
        """Hold no longer what is too long to be kept; what the transaction has is committed first."""
        if self._conversation.exchange.work is not None:
            await self._settle_and_give(more=True)
        else:
            self._passes = True
            await self._give_so_far()

    async def _pass_on(self, message: Message) -> None:
        """Something that is not a plain answer, such as a file that the server is to send by itself."""
        if self._start is not None:
            await self._let_flow()
        self._passes = True
        await self._send(message)

    async def _give_so_far(self) -> None:
        if self._start is not None:
            await self._send(self._start)
            await self._send({"type": "http.response.body", "body": b"".join(self._pieces), "more_body": True})

    async def _settle_and_give(self, *, more: bool = False) -> None:
        said = self._said()
        given = await self._settle(said)
        self._passes = True
        if given is not said:
            await _give(self._send, given)
            self._send = _drop
        elif more:
            await self._give_so_far()
        elif self._start is not None:
            await self._send(self._start)
            await self._send({"type": "http.response.body", "body": said.body})

    def _said(self) -> Answer:
        start = self._start
        assert start is not None, "an answer begins with its status"  # noqa: S101 - looked at before
        headers = [(bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in start["headers"]]
        return Answer(status=start["status"], headers=headers, body=b"".join(self._pieces))

    async def _settle(self, said: Answer) -> Answer:
        self._is_settled = True
        return await _to_the_end(self._settled(said))

    async def _settled(self, said: Answer) -> Answer:
        desk, conversation, is_whole = self._desk, self._conversation, self._is_whole
        if desk.terms.meaning(said.status) is not Meaning.DONE:
            await _beside(conversation, conversation.exchange.undo)
        return await _beside(conversation, lambda: desk.settle(conversation, said, is_whole=is_whole))

    async def end(self) -> None:
        """The application has returned."""
        if self._is_settled or self._start is None:
            return
        if self._passes:  # it has left already; what is left is to note that it was carried out
            await self._settle(self._said())
        elif self._is_whole:
            await self._settle_and_give()


async def _beside(conversation: Conversation, call: Callable[[], T]) -> T:
    """Call without holding up the event loop; where the connection is asynchronous, inside of it."""
    work = conversation.exchange.work
    if work is not None and work.is_async:
        return await work.spawn(call)
    return await asyncio.to_thread(call)


async def _let_go(conversation: Conversation) -> None:
    await _beside(conversation, conversation.exchange.undo)
    await _beside(conversation, conversation.exchange.let_go)


async def _to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await what must not be broken off in the middle; a cancellation is raised after it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _seen(scope: Scope) -> Seen:
    content_type = _values(scope, b"content-type")
    return Seen(
        method=scope["method"],
        path=scope["path"],
        query=bytes(scope.get("query_string", b"")).decode("latin-1"),
        content_type=content_type[0] if content_type else "",
        keys=_values(scope, b"idempotency-key"),
    )


def _values(scope: Scope, name: bytes) -> list[str]:
    return [bytes(value).decode("latin-1") for each, value in scope["headers"] if bytes(each).lower() == name]


async def _read(receive: Receive, body: Body) -> bool:
    """Read a body to its end; False: the caller has gone."""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return False
        body.add(message.get("body", b""))
        if not message.get("more_body", False):
            return True


def _again(body: Body, receive: Receive) -> Receive:
    """The body that was read, and after it whatever the server says."""
    left = body.length
    is_over = False

    async def again() -> Message:
        nonlocal left, is_over
        if is_over:
            return await receive()
        piece = body.file.read(CHUNK)
        left -= len(piece)
        is_over = left <= 0
        return {"type": "http.request", "body": piece, "more_body": not is_over}

    return again


async def _give(send: Send, answer: Answer) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _drop(_message: Message) -> None:
    """Something else was answered."""
