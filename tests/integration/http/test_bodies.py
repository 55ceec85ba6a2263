"""Bodies that are big, come in pieces or are made anew for each attempt; answers that are too long to be kept."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from effectonce.http import bodies


def test_a_big_body_arrives_whole_and_is_compared(lite: Any) -> None:
    seen: list[int] = []

    def endpoint(body: bytes) -> Any:
        seen.append(len(body))
        return 200, b""

    lite.endpoint = endpoint
    big = b"x" * (bodies.IN_MEMORY * 2)
    assert [lite.post(big).is_replay for _ in range(2)] == [False, True]
    assert lite.post(big[:-1] + b"y").status == 422
    assert seen == [len(big)]


def test_a_body_that_is_too_long_is_refused(sites: Callable[..., Any], kind: str, sqlite_url: str) -> None:
    site = sites(kind, sqlite_url, max_request_bytes=10)
    assert (site.post(b"1" * 11).status, site.bodies) == (413, 0)
    assert site.post(b"1" * 9).status == 201


def test_a_form_that_is_sent_again_has_another_boundary(lite: Any) -> None:
    lite.endpoint = lambda _body: (200, b"")

    def send(boundary: str, value: str) -> Any:
        part = f'--{boundary}\r\nContent-Disposition: form-data; name="x"\r\n\r\n{value}\r\n--{boundary}--\r\n'
        return lite.post(part * 5000, content_type=f'multipart/form-data; boundary="{boundary}"')

    assert not send("abc", "1").is_replay
    assert send("xyz123", "1").is_replay
    assert send("xyz123", "2").status == 422


def test_an_answer_that_is_too_long_leaves_and_is_not_kept(
    sites: Callable[..., Any], kind: str, sqlite_url: str
) -> None:
    site = sites(kind, sqlite_url, max_response_bytes=100)
    plain, seen = site.endpoint, list[Any]()

    def endpoint(body: bytes) -> Any:
        plain(body)
        return 200, iter([b"x" * 60] * 5)

    site.endpoint = endpoint
    assert len(site.post(at_start=lambda: seen.append(site.numbers)).body) == 300
    again = site.post()
    assert (again.status, b"answer-not-kept" in again.body) == (409, True)
    assert (site.bodies, site.numbers, site.receipts, seen) == (1, [1], [1], [[1]])


def test_a_long_answer_of_the_weaker_form_is_noted_too(sites: Callable[..., Any], kind: str, sqlite_url: str) -> None:
    site = sites(kind, sqlite_url, max_response_bytes=100)
    site.endpoint = lambda _body: (200, iter([b"x" * 60] * 5))
    assert len(site.post().body) == 300
    assert (site.post().status, site.bodies) == (409, 1)


class Boom(Exception):
    """The stream breaks."""


def test_a_stream_that_breaks_undoes_the_work(lite: Any) -> None:
    plain = lite.endpoint

    def pieces() -> Iterator[bytes]:
        yield b"one"
        raise Boom

    def endpoint(body: bytes) -> Any:
        plain(body)
        return 200, pieces()

    lite.endpoint = endpoint
    with pytest.raises(Boom):
        lite.post()
    assert (lite.numbers, lite.receipts) == ([], [])
    lite.endpoint = plain
    assert (lite.post().status, lite.numbers) == (201, [1])
