"""Starlette: its authentication says who calls, its background tasks run after the answer, and the mode is heeded."""

import base64
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from effectonce.http.asgi import IdempotencyMiddleware
from tests.integration.http.sites import AsgiSite


class Basic(AuthenticationBackend):
    """Whoever says a name is that one."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        words = conn.headers.get("Authorization", "").split()
        if len(words) < 2:
            return None
        return AuthCredentials(["authenticated"]), Named(base64.b64decode(words[1]).decode().split(":")[0])


class Named(SimpleUser):
    """A user with an identity."""

    @property
    def identity(self) -> str:
        return self.username


@pytest.fixture
def site(sqlite_url: str) -> Any:
    site = AsgiSite(sqlite_url)
    yield site
    site.close()


def serve(site: AsgiSite, after: list[Any]) -> Starlette:
    async def take_order(request: Request) -> Response:
        status, said = await run_in_threadpool(site.serve, await request.body())
        assert isinstance(said, bytes)
        background = BackgroundTask(lambda: after.append(site.numbers))
        return PlainTextResponse(said, status_code=status, background=background)

    return Starlette(
        routes=[Route("/orders", take_order, methods=["POST"])],
        middleware=[
            Middleware(AuthenticationMiddleware, backend=Basic()),
            Middleware(IdempotencyMiddleware, once=site.once),
        ],
    )


def test_a_user_with_a_new_password_is_the_same_caller(site: AsgiSite) -> None:
    after: list[Any] = []
    with TestClient(serve(site, after)) as client:

        def ask(user: str, password: str) -> Any:
            return client.post("/orders", content=b"1", headers={"Idempotency-Key": "k"}, auth=(user, password))

        answers = [ask("ann", "old"), ask("ann", "new"), ask("bob", "old")]
    assert [answer.headers.get("Idempotency-Replayed") for answer in answers] == [None, "true", None]
    assert {answer.text for answer in answers} == {"order 1"}
    assert (site.bodies, site.numbers, site.receipts) == (2, [1, 1], [1, 1])
    assert after == [[1], [1, 1]], "background tasks run when the work is committed"


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_a_mode_that_enforces_nothing_lets_every_request_run(site: AsgiSite, mode: str) -> None:
    site.once.app.conf.effectonce_mode = mode
    site.once._settings = None
    site.using(required=True)
    assert [site.post(key=key).status for key in ("k", "k", None)] == [201] * 3
    assert site.numbers == [1, 1, 1]
