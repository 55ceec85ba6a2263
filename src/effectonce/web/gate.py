"""Who may come in, and what every answer forbids the browser.

A password makes a session: a cookie that names its end and is signed with a key made of the password and of a secret of
this process. Forms carry a token signed for that cookie, so another site cannot send them. Without a password the
dashboard answers to names of this machine only: a page of the web that has its name point here gets nothing (DNS
rebinding). What is compared with a secret is compared in constant time.
"""

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE: Final = "effectonce_session"
FORM: Final = "effectonce_form"
LIFE: Final = 12 * 3600
"""Seconds that a session lasts."""

_TRIES: Final = 10
_WINDOW: Final = 60.0
"""So many wrong passwords in so many seconds, and nobody gets in for the rest of them."""

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1", "testserver"})
_OPEN: Final = ("/login", "/static/")
HEADERS: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


@dataclass(slots=True, kw_only=True)
class Keys:
    """What opens the dashboard."""

    password: str = ""
    token: str = ""
    trusted: bool = False
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    wrong: list[float] = field(default_factory=list)

    @property
    def is_locked(self) -> bool:
        """Whether one has to show something."""
        return bool(self.password or self.token)

    def is_password(self, said: str) -> bool:
        """Compare in constant time."""
        return bool(self.password) and hmac.compare_digest(said.encode(), self.password.encode())

    def is_token(self, said: str) -> bool:
        """Compare in constant time."""
        return bool(self.token) and hmac.compare_digest(said.encode(), self.token.encode())

    def is_barred(self) -> bool:
        """Whether too many wrong passwords came just now."""
        now = time.monotonic()
        self.wrong = [at for at in self.wrong if now - at < _WINDOW]
        return len(self.wrong) >= _TRIES

    def sign(self, *words: str) -> str:
        """A signature that only this process can make, and only with this password."""
        key = hashlib.blake2b(self.password.encode(), key=self.secret, digest_size=32).digest()
        return hmac.new(key, "\0".join(words).encode(), "sha256").hexdigest()

    def new_session(self) -> str:
        """A cookie for whoever has shown the password."""
        named = f"{int(time.time()) + LIFE}.{secrets.token_hex(8)}"
        return f"{named}.{self.sign('session', named)}"

    def is_session(self, cookie: str) -> bool:
        """Whether a cookie is one of ours and has not ended."""
        named, _, signature = cookie.rpartition(".")
        ends = named.partition(".")[0]
        fine = hmac.compare_digest(signature.encode(), self.sign("session", named).encode())
        return fine and ends.isdigit() and int(ends) > time.time()

    def form_token(self, request: Request) -> str:
        """What a form of this browser carries; where nobody logs in, it is tied to a cookie of the browser's own."""
        return self.sign("form", request.cookies.get(COOKIE) or request.cookies.get(FORM) or "")

    def is_form(self, request: Request, said: str) -> bool:
        """Whether a form came from a page of ours in the same browser."""
        tied = request.cookies.get(COOKIE) or request.cookies.get(FORM)
        return bool(tied) and hmac.compare_digest(said.encode(), self.form_token(request).encode())


class Gate:
    """Lets those in who may."""

    def __init__(self, app: ASGIApp, *, keys: Keys) -> None:
        self._app = app
        self._keys = keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        keys, request = self._keys, Request(scope)
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if not keys.is_locked:
            if keys.trusted or _host_of(request.headers) in _LOCAL:
                return None
            return PlainTextResponse("this dashboard has no password and answers to this machine only\n", 403)
        bearer = request.headers.get("authorization", "")
        if path.startswith(_OPEN) or keys.is_token(bearer.removeprefix("Bearer ")):
            return None
        if keys.is_session(request.cookies.get(COOKIE, "")):
            return None
        if request.method == "GET" and "text/html" in request.headers.get("accept", ""):
            return RedirectResponse(f"{scope.get('root_path', '')}/login", 303)
        return PlainTextResponse("not allowed\n", 401, {"www-authenticate": "Bearer"})


class Safe:
    """Adds the headers that forbid what this dashboard never does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, and add to what comes back."""

        async def safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if "/static/" not in scope["path"]:
                    headers["cache-control"] = "no-store"
            await send(message)

        await self._app(scope, receive, safely if scope["type"] == "http" else send)


def _host_of(headers: Headers) -> str:
    return urlsplit(f"//{headers.get('host', '')}").hostname or ""
