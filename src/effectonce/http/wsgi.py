"""The WSGI middleware: Flask and whatever else speaks WSGI.

The answer is read to its end, the work is committed, and then it leaves. When the application begins its answer, what
its session holds is taken into the transaction: frameworks close their sessions before the server reads the body.
"""

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any

from effectonce.app.http import Conversation
from effectonce.domain.idempotency import Meaning
from effectonce.http import answers
from effectonce.http.answers import Answer, Headers
from effectonce.http.bodies import CHUNK, Body, TooLarge
from effectonce.http.callers import caller_of
from effectonce.http.desk import Desk, Seen, Terms

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
App = Callable[[Environ, StartResponse], Iterable[bytes]]


class IdempotencyMiddleware:
    """Lets requests under an `Idempotency-Key` take effect once.

    ``app.wsgi_app = IdempotencyMiddleware(app.wsgi_app, once=once)``. Options are
    those of `desk.Terms`. Raises SettingsInvalid for one that cannot be used.
    """

    def __init__(self, app: App, /, **terms: Any) -> None:
        self._app = app
        self._desk = Desk(Terms(**terms))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        seen = _seen(environ)
        key = self._desk.key_of(seen)
        if isinstance(key, Answer):
            return _give(start_response, key)
        if key is None:
            conversation = self._desk.converse(seen, None, caller="", body=b"")
            return self._serve(conversation, environ, start_response)
        body = Body(seen.content_type, limit=self._desk.terms.max_request_bytes)
        try:
            return self._serve_under(key, seen, body, environ, start_response)
        except BaseException:
            body.file.close()
            raise

    def _serve_under(
        self, key: str, seen: Seen, body: Body, environ: Environ, start_response: StartResponse
    ) -> Iterable[bytes]:
        try:
            refusal = None if _read(environ, body) else answers.cut_off()
        except TooLarge:
            refusal = answers.too_large(self._desk.terms.max_request_bytes)
        if refusal is None:
            conversation = self._desk.converse(seen, key, caller=self._caller(environ), body=body.end())
            refusal = self._desk.admit(conversation)
            if refusal is None:
                environ["wsgi.input"] = body.file
                environ["CONTENT_LENGTH"] = str(body.length)
                return self._serve(conversation, environ, start_response, file=body.file)
        body.file.close()
        return _give(start_response, refusal)

    def _serve(
        self, conversation: Conversation, environ: Environ, start_response: StartResponse, *, file: Any = None
    ) -> Iterable[bytes]:
        reply = _Reply(self._desk, conversation, file)
        try:
            with conversation.current():
                reply.body = self._app(environ, reply.start)
                return reply.give(start_response)
        except BaseException:
            reply.close()
            raise

    def _caller(self, environ: Environ) -> str:
        if self._desk.terms.caller is not None:
            return str(self._desk.terms.caller(environ))
        return caller_of(
            user=environ.get("REMOTE_USER"),
            authorization=environ.get("HTTP_AUTHORIZATION"),
            has_cookies=bool(environ.get("HTTP_COOKIE")),
        )


class _Reply:
    """What the application says, until it may leave."""

    def __init__(self, desk: Desk, conversation: Conversation, file: Any) -> None:
        self._desk = desk
        self._file = file
        self._conversation = conversation
        self._pieces: list[bytes] = []
        self._status = ""
        self._headers: Headers = []
        self._has_left = False
        self.body: Iterable[bytes] = ()

    def start(self, status: str, headers: Headers, exc_info: Any = None) -> Callable[[bytes], None]:
        """WSGI's ``start_response``, as the application sees it."""
        if exc_info and self._has_left:
            raise exc_info[1]
        self._status, self._headers = status, list(headers)
        work = self._conversation.exchange.work
        if work is not None and self._desk.terms.meaning(self._code) is Meaning.DONE:
            work.seal()
        return self._pieces.append

    @property
    def _code(self) -> int:
        return int(self._status.split(" ", 1)[0])

    def give(self, start_response: StartResponse) -> Iterable[bytes]:
        """Read the answer as far as it may be kept, settle, and let it leave."""
        exchange = self._conversation.exchange
        pieces = iter(self.body)
        watched = exchange.claim is not None
        while watched or exchange.work is not None or not self._status:
            piece = next(pieces, None)
            watched = watched or exchange.work is not None
            if piece is None:
                return self._give_whole(start_response)
            self._pieces.append(piece)
            if sum(map(len, self._pieces)) > self._desk.terms.max_response_bytes:
                break
        return self._give_flowing(pieces, start_response)

    def _give_whole(self, start_response: StartResponse) -> Iterable[bytes]:
        self._close_body()
        said = self._said()
        given = self._desk.settle(self._conversation, said, is_whole=True)
        if given is not said:
            return _give(start_response, given)
        self._has_left = True
        start_response(self._status, list(self._headers))
        return [said.body]

    def _give_flowing(self, pieces: Iterator[bytes], start_response: StartResponse) -> Iterable[bytes]:
        """An answer that is too long to be kept: its transaction is committed first, a weaker form noted at the end."""
        said = self._said()
        if self._conversation.exchange.work is not None:
            given = self._desk.settle(self._conversation, said, is_whole=False)
            if given is not said:
                self._close_body()
                return _give(start_response, given)
        self._has_left = True
        start_response(self._status, list(self._headers))
        return _Flow(self, said, pieces)

    def _said(self) -> Answer:
        return Answer(status=self._code, headers=self._headers, body=b"".join(self._pieces))

    def end(self, said: Answer) -> None:
        """All of a flowing answer has left."""
        exchange = self._conversation.exchange
        if exchange.is_held or exchange.work is not None:
            self._desk.settle(self._conversation, said, is_whole=False)

    def close(self) -> None:
        """Let go of what was not settled."""
        exchange = self._conversation.exchange
        try:
            self._close_body()
        finally:
            if exchange.is_held or exchange.work is not None:
                exchange.let_go()

    def _close_body(self) -> None:
        body, self.body = self.body, ()
        close = getattr(body, "close", None)
        try:
            if close is not None:
                close()
        finally:
            if self._file is not None:
                self._file.close()


class _Flow:
    """The rest of an answer that has begun to leave."""

    def __init__(self, reply: _Reply, said: Answer, pieces: Iterator[bytes]) -> None:
        self._reply = reply
        self._said = said
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield self._said.body
        yield from self._pieces
        self._reply.end(self._said)

    def close(self) -> None:
        """The server is done with it, at the end or before."""
        self._reply.close()


def _seen(environ: Environ) -> Seen:
    key = environ.get("HTTP_IDEMPOTENCY_KEY")
    return Seen(
        method=environ["REQUEST_METHOD"],
        path=environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""),
        query=environ.get("QUERY_STRING", ""),
        content_type=environ.get("CONTENT_TYPE", ""),
        keys=[] if key is None else [key],
    )


def _read(environ: Environ, body: Body) -> bool:
    """Read a body to its end: as long as it says, or, where the server marks the end, until then.

    False: it ended before it was as long as it says.
    """
    stream, length = environ["wsgi.input"], environ.get("CONTENT_LENGTH") or ""
    left = int(length) if length.isdigit() else None
    if left is None and not environ.get("wsgi.input_terminated"):
        left = 0
    while left is None or left > 0:
        piece = stream.read(CHUNK if left is None else min(CHUNK, left))
        if not piece:
            return left is None
        body.add(piece)
        left = None if left is None else left - len(piece)
    return True


def _give(start_response: StartResponse, answer: Answer) -> Iterable[bytes]:
    start_response(f"{answer.status} {_phrase(answer.status)}", list(answer.headers))
    return [answer.body]


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
