"""The middleware under Django: a view of plain ORM, its messages and the record of its answer are one commit."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connections, transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import RequestFactory, override_settings
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from effectonce import EffectOnce, SettingsInvalid
from effectonce.http.django import IdempotencyMiddleware, idempotency
from tests.integration.django.books.models import Charge


class Boom(Exception):
    """The view breaks."""


class Server:
    """As much of Django's handler as a view needs: it turns exceptions into answers before the middleware sees them."""

    def __init__(self, once: EffectOnce, alias: str) -> None:
        self.once = once
        self.alias = alias
        self.runs = 0
        self.view: Callable[[HttpRequest], Any] = self.take
        self.middleware = IdempotencyMiddleware(self.inner)
        self.sent: list[str] = []
        self.receipt = once.app.task(_nothing, name="receipt")

    def take(self, _request: HttpRequest) -> HttpResponse:
        """Write a row and send a message."""
        Charge.objects.using(self.alias).create(order=1)
        self.receipt.apply_async(task_id="receipt of 1")
        return HttpResponse("charged", status=201, headers={"X-Made-By": "view"})

    def inner(self, request: HttpRequest) -> HttpResponse:
        refusal = self.middleware.process_view(request, self.view, (), {})
        if refusal is not None:
            return refusal
        self.runs += 1
        try:
            response: HttpResponse = self.view(request)
        except Http404:
            return HttpResponse(status=404)
        except Boom:
            return HttpResponse(status=500)
        return response.render() if hasattr(response, "render") else response

    def post(self, data: Any = "1", *, key: str | None = "k", who: str = "Bearer ann", **more: Any) -> HttpResponse:
        headers = {"Authorization": who} if who else {}
        if key is not None:
            headers["Idempotency-Key"] = key
        if isinstance(data, str):
            more = {"content_type": "text/plain", **more}
        return self.middleware(RequestFactory().post("/orders", data, headers=headers, **more))

    @property
    def charges(self) -> int:
        return int(Charge.objects.using(self.alias).count())


def _nothing() -> None: ...


@pytest.fixture
def server(once: EffectOnce, alias: str) -> Iterator[Server]:
    with override_settings(EFFECTONCE_HTTP={"once": once}):
        server = Server(once, alias)

        class Broker:
            def send(self, messages: Any) -> list[None]:
                server.sent.extend(each.task_id for each in messages)
                return [None] * len(messages)

        vars(once.dispatcher)["_broker"] = Broker()
        yield server


def is_replay(response: HttpResponse) -> bool:
    return bool(response.headers.get("Idempotency-Replayed") == "true")


def test_a_retried_request_makes_no_second_row_and_no_second_task(server: Server) -> None:
    first, again = server.post(), server.post()
    assert [(each.status_code, each.content, is_replay(each)) for each in (first, again)] == [
        (201, b"charged", False),
        (201, b"charged", True),
    ]
    assert again["X-Made-By"] == "view"
    assert (server.runs, server.charges, server.sent) == (1, 1, ["receipt of 1"])
    assert server.post("2").status_code == 422


def test_a_twin_inside_of_the_view_is_told_so(server: Server) -> None:
    twins: list[HttpResponse] = []
    plain = server.view

    def view(request: HttpRequest) -> HttpResponse:
        said: HttpResponse = plain(request)
        if not twins:
            twins.append(server.middleware(RequestFactory().post("/orders", "1", **_sent())))
        return said

    def _sent() -> dict[str, Any]:
        return {"content_type": "text/plain", "headers": {"Authorization": "Bearer ann", "Idempotency-Key": "k"}}

    server.view = view
    assert server.post().status_code == 201
    assert ([twin.status_code for twin in twins], server.charges) == ([409], 1)


@pytest.mark.parametrize("alias", ["postgresql"], indirect=True)
def test_a_crowd_of_twins_makes_one_row(server: Server) -> None:
    """A twin that looks at the entry has the key's lock for a moment; the first one is not put off by that."""

    def ask(_: int) -> int:
        try:
            return int(server.post().status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(ask, range(12)))
    assert set(statuses) <= {201, 409}
    assert statuses.count(201) >= 1
    assert (server.runs, server.charges, server.sent) == (1, 1, ["receipt of 1"])


def test_refusals_and_failures_undo_the_work(server: Server) -> None:
    plain = server.view

    def breaks(request: HttpRequest) -> None:
        plain(request)
        raise Boom

    def missing(request: HttpRequest) -> None:
        plain(request)
        raise Http404

    server.view = breaks
    assert server.post().status_code == 500
    server.view = missing
    assert [server.post().status_code for _ in range(2)] == [404, 404]
    assert (server.runs, server.charges, server.sent) == (2, 0, [])
    server.view = plain
    assert server.post(key="other").status_code == 201
    assert (server.charges, server.sent) == (1, ["receipt of 1"])


def test_a_view_under_atomic_requests_is_a_savepoint(server: Server) -> None:
    plain = server.view
    server.view = transaction.atomic(using=server.alias)(plain)
    assert [is_replay(server.post()) for _ in range(2)] == [False, True]
    assert (server.charges, server.sent) == (1, ["receipt of 1"])


def test_a_view_that_keeps_its_transactions_to_itself_gets_the_weaker_form(server: Server) -> None:
    plain = server.view

    @idempotency(required=True, transaction=False)
    def view(request: HttpRequest) -> HttpResponse:
        with transaction.atomic(using=server.alias, durable=True), server.once.outbox():
            said: HttpResponse = plain(request)
        return said

    server.view = view
    assert server.post(key=None).status_code == 400
    assert [is_replay(server.post()) for _ in range(2)] == [False, True]
    assert (server.runs, server.charges, server.sent) == (1, 1, ["receipt of 1"])


def test_a_view_may_be_exempt(server: Server) -> None:
    @idempotency(exempt=True)
    def view(request: HttpRequest) -> HttpResponse:
        return server.take(request)

    server.view = view
    assert [is_replay(server.post()) for _ in range(2)] == [False, False]
    with pytest.raises(SettingsInvalid):
        idempotency(exemptt=True)


def test_forms_with_files_are_compared_without_their_boundary(server: Server) -> None:
    def send(text: bytes) -> HttpResponse:
        return server.post({"x": "1", "file": SimpleUploadedFile("a.txt", text)})

    server.view = lambda request: HttpResponse(request.FILES["file"].read())
    assert [(is_replay(got), got.content) for got in (send(b"one"), send(b"one"))] == [(False, b"one"), (True, b"one")]
    assert send(b"two").status_code == 422


def test_streams_are_kept_if_they_are_short(server: Server) -> None:
    server.view = lambda _request: StreamingHttpResponse(iter([b"a", b"b"]))
    server.post()
    assert server.post().content == b"ab"
    with override_settings(EFFECTONCE_HTTP={"once": server.once, "max_response_bytes": 1}):
        server.middleware = IdempotencyMiddleware(server.inner)
        assert b"".join(server.post(key="long").streaming_content) == b"ab"
        assert server.post(key="long").status_code == 409


def test_users_have_keys_of_their_own(server: Server) -> None:
    class User:
        is_authenticated = True

        def __init__(self, pk: int) -> None:
            self.pk = pk

    def ask(user: Any, token: str) -> HttpResponse:
        headers = {"Authorization": token, "Idempotency-Key": "k", "Cookie": "sessionid=1"}
        request = RequestFactory().post("/orders", "1", content_type="text/plain", headers=headers)
        request.user = user
        return server.middleware(request)

    assert [is_replay(ask(User(pk), str(nth))) for nth, pk in enumerate([1, 2, 1])] == [False, False, True]


def test_a_server_that_is_interrupted_lets_go(server: Server) -> None:
    plain = server.view

    def view(request: HttpRequest) -> None:
        plain(request)
        raise KeyboardInterrupt

    server.view = view
    with pytest.raises(KeyboardInterrupt):
        server.post()
    server.view = plain
    assert (server.post().status_code, server.charges, server.sent) == (201, 1, ["receipt of 1"])


@override_settings(REST_FRAMEWORK={"UNAUTHENTICATED_USER": None})
def test_views_of_the_rest_framework_are_served_too(server: Server) -> None:
    """What it refuses by an exception is undone as well."""

    class Orders(APIView):
        authentication_classes: ClassVar[list[Any]] = []
        renderer_classes: ClassVar[list[Any]] = [JSONRenderer]

        def post(self, request: Request) -> Response:
            server.take(request)
            if request.data["total"] < 0:
                raise ValidationError({"total": "is below 0"})
            return Response({"total": request.data["total"]}, status=201)

    server.view = idempotency(required=True)(Orders.as_view())

    def send(total: int, **more: Any) -> HttpResponse:
        return server.post(f'{{"total": {total}}}', content_type="application/json", **more)

    assert send(9, key=None).status_code == 400
    assert [(got.status_code, got.content, is_replay(got)) for got in (send(9), send(9))] == [
        (201, b'{"total":9}', False),
        (201, b'{"total":9}', True),
    ]
    assert [send(-1, key="below").status_code for _ in range(2)] == [400, 400]
    assert (server.runs, server.charges, server.sent) == (2, 1, ["receipt of 1"])
