"""A request under a key takes effect once: one row, one message, and the same answer for each retry."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session

from effectonce import Leased, LedgerUnavailable, LedgerUnsuitable, OutsideEffect, SettingsInvalid
from effectonce.app import requests
from effectonce.lab.process_tree import wait_until
from effectonce.runtime import exchange
from tests.integration.http.sites import echo, orders


def test_a_retried_request_gets_the_first_answer_and_makes_no_second_row_and_no_second_task(site: Any) -> None:
    first = site.post()
    assert (first.status, first.body, first.is_replay) == (201, b"order 1", False)
    for _ in range(2):
        again = site.post()
        assert (again.status, again.body, again.is_replay) == (201, b"order 1", True)
        assert again.headers["x-made-by"] == "site"
        assert again.headers["content-length"] == "7"
    assert (site.bodies, site.numbers, site.receipts) == (1, [1], [1])


def test_the_same_key_for_another_request_is_refused(site: Any) -> None:
    site.post()
    for other in ({"body": b"2"}, {"path": "/refunds"}, {"content_type": "application/json"}, {"method": "PATCH"}):
        answer = site.post(**{"body": b"1", **other})
        assert answer.status == 422, other
        assert answer.headers["content-type"] == "application/problem+json"
    assert (site.bodies, site.numbers, site.receipts) == (1, [1], [1])


def test_a_twin_that_comes_meanwhile_is_told_so_and_gets_the_answer_later(site: Any) -> None:
    entered, go_on = threading.Event(), threading.Event()
    plain = site.endpoint

    def slow(body: bytes) -> Any:
        said = plain(body)
        entered.set()
        assert go_on.wait(30)
        return said

    site.endpoint = slow
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(site.post)
        assert entered.wait(30)
        twin = site.post()
        assert (twin.status, int(twin.headers["retry-after"]) >= 1) == (409, True)
        go_on.set()
        assert first.result(30).status == 201
    assert site.post().is_replay
    assert (site.bodies, site.numbers, site.receipts) == (1, [1], [1])


def test_a_crowd_of_twins_makes_one_row(sites: Callable[..., Any], kind: str, postgresql_url: str) -> None:
    site = sites(kind, postgresql_url)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: site.post(), range(16)))
    assert {answer.status for answer in answers} <= {201, 409}
    assert (site.bodies, site.numbers, site.receipts) == (1, [1], [1])


def test_the_commit_comes_before_the_first_byte(site: Any) -> None:
    seen: list[Any] = []
    site.post(at_start=lambda: seen.append(site.numbers))
    assert seen == [[1]]


@pytest.mark.parametrize("status", [400, 402, 404, 422])
def test_a_refusal_undoes_the_work_and_is_replayed(lite: Any, status: int) -> None:
    plain = lite.endpoint
    lite.endpoint = lambda body: (status, plain(body)[1])
    assert lite.post().status == status
    assert (lite.post().status, lite.post().is_replay) == (status, True)
    assert (lite.bodies, lite.numbers, lite.receipts) == (1, [], [])


@pytest.mark.parametrize("status", [401, 409, 429, 500, 503])
def test_what_may_go_well_another_time_undoes_the_work_and_frees_the_key(lite: Any, status: int) -> None:
    plain = lite.endpoint
    lite.endpoint = lambda body: (status, plain(body)[1])
    assert (lite.post().status, lite.numbers, lite.receipts) == (status, [], [])
    lite.endpoint = plain
    assert (lite.post().status, lite.numbers, lite.receipts) == (201, [1], [1])


class Boom(Exception):
    """The endpoint breaks."""


def test_an_exception_undoes_the_work_and_frees_the_key(site: Any) -> None:
    plain = site.endpoint

    def breaks(body: bytes) -> Any:
        plain(body)
        site.once.http.session().commit()  # ends a savepoint only
        raise Boom

    site.endpoint = breaks
    with pytest.raises(Boom):
        site.post()
    assert (site.numbers, site.receipts) == ([], [])
    site.endpoint = plain
    assert (site.post().status, site.numbers, site.receipts) == (201, [1], [1])


def test_a_savepoint_that_is_undone_takes_its_messages_along(site: Any) -> None:
    def endpoint(body: bytes) -> Any:
        session = site.once.http.session()
        session.execute(orders.insert().values(number=int(body)))
        site.receipt.delay("kept")
        with suppress(Boom), session.begin_nested():
            site.receipt.delay("lost")
            raise Boom
        with site.once.outbox(), site.once.outbox(session):
            site.receipt.delay("kept too")
        session.commit()
        return 200, b""

    site.endpoint = endpoint
    assert site.post().status == 200
    assert (site.numbers, site.receipts) == ([1], ["kept", "kept too"])


def test_keys_belong_to_their_caller(site: Any) -> None:
    assert [site.post(caller=who).is_replay for who in ("Bearer ann", "Bearer bob", "", "Bearer ann")] == [
        False,
        False,
        False,
        True,
    ]
    assert site.numbers == [1, 1, 1]
    assert "Bearer" not in "".join(entry.key for entry in site.once.ledger.entries(state=None, limit=9))


def test_who_calls_can_be_said(sites: Callable[..., Any], kind: str, sqlite_url: str) -> None:
    site = sites(kind, sqlite_url, caller=lambda _request: "ann")
    assert [site.post(caller=token).is_replay for token in ("Bearer 1", "Bearer 2")] == [False, True]


def test_a_caller_that_only_a_cookie_may_tell_is_refused(lite: Any) -> None:
    with pytest.raises(SettingsInvalid, match="caller="):
        lite.post(caller="", cookie="sessionid=1")
    assert lite.bodies == 0


@pytest.mark.parametrize(
    "key", ["", '""', "a" * 256, "ä", "a b", "a,b", 'a"b', "a\\b", "\x7f"], ids=[str(nth) for nth in range(9)]
)
def test_a_key_that_cannot_be_used_is_refused(lite: Any, key: str) -> None:
    answer = lite.post(key=key)
    assert (answer.status, answer.headers["content-type"]) == (400, "application/problem+json")
    assert lite.bodies == 0


def test_a_quoted_key_is_the_same_as_a_bare_one(lite: Any) -> None:
    assert [lite.post(key=key).is_replay for key in ("k-1", '"k-1"', " k-1 ")] == [False, True, True]


def test_a_key_may_be_required(sites: Callable[..., Any], kind: str, sqlite_url: str) -> None:
    site = sites(kind, sqlite_url, required=lambda _method, path: path.startswith("/orders"))
    assert (site.post(key=None).status, site.bodies) == (400, 0)
    assert (site.post(key=None, path="/other").status, site.bodies) == (201, 1)
    assert (site.post(key=None, method="GET").status, site.bodies) == (201, 2)


def test_a_request_without_a_key_has_a_transaction_too(site: Any) -> None:
    plain, seen = site.endpoint, list[Any]()
    for _ in range(2):
        assert site.post(key=None, at_start=lambda: seen.append(site.numbers)).status == 201
    assert (site.numbers, site.receipts, seen) == ([1, 1], [1, 1], [[1], [1, 1]])
    site.endpoint = lambda body: (500, plain(body)[1])
    site.post(key=None)
    assert (site.numbers, site.receipts) == ([1, 1], [])


def test_an_endpoint_with_a_session_of_its_own_is_run_once_too(lite: Any) -> None:
    """The weaker form."""

    def endpoint(body: bytes) -> Any:
        with Session(lite.engine) as session, session.begin():
            session.execute(orders.insert().values(number=int(body)))
        lite.receipt.delay(int(body))
        return 201, b"made"

    lite.endpoint = endpoint
    assert [(got.status, got.is_replay) for got in (lite.post(), lite.post())] == [(201, False), (201, True)]
    assert (lite.numbers, lite.receipts) == ([1], [1])


def test_what_has_taken_place_is_recorded_as_soon_as_the_ledger_answers(
    lite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, refusals = lite.once.ledger, 2
    plain = store.complete

    def complete(*args: Any) -> Any:
        nonlocal refusals
        refusals -= 1
        if refusals >= 0:
            raise LedgerUnavailable(ledger="here", reason="a test")
        return plain(*args)

    monkeypatch.setattr(store, "complete", complete)
    lite.endpoint = lambda body: (201, body)
    assert [(got.status, got.is_replay) for got in (lite.post(), lite.post())] == [(201, False), (201, True)]


def test_what_has_taken_place_is_not_let_go_when_it_cannot_be_recorded(
    lite: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complete(*_: Any) -> None:
        raise LedgerUnavailable(ledger="here", reason="a test")

    monkeypatch.setattr(exchange, "INSIST", 0)
    monkeypatch.setattr(lite.once.ledger, "complete", complete)
    lite.endpoint = lambda body: (201, body)
    assert [lite.post().status for _ in range(2)] == [201, 409]
    assert lite.bodies == 1


@pytest.mark.parametrize("ledger", ["redis", "memory"])
def test_a_ledger_that_is_no_database_gives_the_weaker_form(
    request: pytest.FixtureRequest, sites: Callable[..., Any], kind: str, ledger: str
) -> None:
    url = request.getfixturevalue("redis_url") if ledger == "redis" else f"memory://http-{kind}"
    site = sites(kind, url)
    site.endpoint = lambda body: (201, body)
    assert [(got.status, got.is_replay) for got in (site.post(), site.post())] == [(201, False), (201, True)]
    site.endpoint = lambda _body: site.once.http.session()
    with pytest.raises(LedgerUnsuitable):
        site.post(key="other")


def test_a_session_is_refused_where_nobody_serves_a_request(lite: Any) -> None:
    with pytest.raises(OutsideEffect):
        lite.once.http.session()


def test_a_task_without_a_key_is_named_by_the_request(lite: Any) -> None:
    lite.endpoint = lambda body: (200, str(lite.note.delay(int(body))).encode())
    lite.note = lite.app.task(echo, name=f"{lite.queue}.note", once=Leased())
    lite.post()
    (message,) = lite.sent()
    (entry,) = lite.once.ledger.entries(state=None, limit=9)
    assert message.headers[requests.HTTP] == entry.digest.hex()


def test_records_are_kept_for_a_time(sites: Callable[..., Any], kind: str, sqlite_url: str) -> None:
    site = sites(kind, sqlite_url, keep_seconds=0.05)
    site.post()
    assert wait_until(lambda: sum(filter(None, site.once.entries.prune().values())) == 1, seconds=30)
    assert not site.post().is_replay
    assert site.numbers == [1, 1]


def test_a_ledger_that_is_away_lets_nothing_run(lite: Any) -> None:
    with lite.engine.begin() as connection:
        connection.execute(sa.text("alter table effectonce_entries rename to gone"))
    answer = lite.post()
    assert (answer.status, "retry-after" in answer.headers, lite.bodies) == (503, True, 0)


@pytest.mark.parametrize("terms", [{"methods": "POST"}, {"keep_seconds": 0}, {"caller": 1}, {"once": None}])
def test_terms_that_cannot_be_meant_are_refused(lite: Any, terms: dict[str, Any]) -> None:
    with pytest.raises(SettingsInvalid):
        type(lite.front)(None, **{"once": lite.once, **terms})
