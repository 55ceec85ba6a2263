"""The Idempotency-Key of a request."""

import pytest

from effectonce.domain.idempotency import (
    LONGEST,
    KeyRefused,
    Meaning,
    digest_of,
    fingerprint_of,
    meaning_of,
    read_key,
    readable,
)

REQUEST = {"method": "POST", "path": "/orders", "query": "a=1", "content_type": "text/plain", "body": b"digest"}


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ([], None),
        (["8e03978e"], "8e03978e"),
        (['"8e03978e"'], "8e03978e"),
        (["  8e03978e "], "8e03978e"),
        (["x"], "x"),
        (["!#$%&'()*+-./09:;<=>?@AZ[]^_`az{|}~"], "!#$%&'()*+-./09:;<=>?@AZ[]^_`az{|}~"),
        (["k" * LONGEST], "k" * LONGEST),
        (['"' + "k" * LONGEST + '"'], "k" * LONGEST),
    ],
)
def test_a_quoted_key_and_a_bare_one_are_one(values: list[str], key: str | None) -> None:
    assert read_key(values) == key


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (["a", "a"], "more than once"),
        ([""], "empty"),
        ([" "], "empty"),
        (['""'], "empty"),
        (["k" * (LONGEST + 1)], f"longer than {LONGEST}"),
        (['"'], "visible ASCII"),
        (['"a'], "quotation mark"),
        (['a"'], "quotation mark"),
        (["a,b"], "comma"),
        (["a\\b"], "backslash"),
        (["a b"], "visible ASCII"),
        (["schlüssel"], "visible ASCII"),
        (["a\x7f"], "visible ASCII"),
    ],
)
def test_a_header_that_is_not_one_key_is_refused_with_the_reason(values: list[str], why: str) -> None:
    with pytest.raises(KeyRefused, match=why):
        read_key(values)


def test_a_key_belongs_to_its_caller_and_its_namespace() -> None:
    digests = {
        digest_of(namespace=namespace, caller=caller, key=key)
        for namespace, caller, key in [("", "", "ab"), ("a", "", "b"), ("", "a", "b"), ("a", "b", ""), ("", "", "a")]
    }
    assert {len(each) for each in digests} == {16}
    assert len(digests) == 5
    assert digest_of(namespace="", caller="", key="k") == digest_of(namespace="", caller="", key="k")
    assert digest_of(namespace="shop", caller="anna", key="8e03978e").hex() == "8ed93bafcb1342b42974d51519af51d1", (
        "a change forgets every answer"
    )


def test_everything_that_a_request_says_is_its_fingerprint() -> None:
    other = {"method": "PUT", "path": "/order", "query": "a=2", "content_type": "text/html", "body": b"digesu"}
    prints = {fingerprint_of(**{**REQUEST, name: value}) for name, value in other.items()}  # type: ignore[arg-type]
    prints.add(fingerprint_of(**REQUEST))  # type: ignore[arg-type]
    assert len(prints) == 6
    assert {len(each) for each in prints} == {12}
    assert fingerprint_of(**REQUEST).hex() == "3a9be3fd2ffcbd645b3b8da4"  # type: ignore[arg-type]


def test_a_person_sees_the_request_and_not_who_called() -> None:
    secret = readable(method="POST", path="/orders", caller="Bearer s3cret", key="k1")
    assert secret.startswith("http POST /orders key=k1 caller=")
    assert "s3cret" not in secret
    assert len(secret.rpartition("=")[2]) == 8
    assert secret != readable(method="POST", path="/orders", caller="Bearer other", key="k1")
    assert (
        readable(method="GET", path="/" + "p" * 90, caller="", key="k") == f"http GET /{'p' * 79} key=k caller=anybody"
    )


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (200, Meaning.DONE),
        (201, Meaning.DONE),
        (303, Meaning.DONE),
        (399, Meaning.DONE),
        (400, Meaning.REFUSED),
        (404, Meaning.REFUSED),
        (422, Meaning.REFUSED),
        (499, Meaning.REFUSED),
        *((status, Meaning.FREE) for status in (401, 403, 408, 409, 425, 429, 500, 503)),
    ],
)
def test_what_an_answer_means_for_its_key(status: int, meaning: Meaning) -> None:
    assert meaning_of(status) is meaning
