"""Answers to requests: the endpoint's, as they are kept, and our own, as problem details (RFC 9457)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

PAGE: Final = "https://effectonce.readthedocs.io/how-to/http-idempotency-keys"
"""The page that explains every problem."""

REPLAYED: Final = ("Idempotency-Replayed", "true")

_OF_THE_CONNECTION: Final = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "proxy-connection",
        "server",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OF_THE_FIRST_CALLER: Final = frozenset({"set-cookie"})
"""A cookie is a secret, and may have been replaced since."""

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A whole answer; header values are text as HTTP has it, one character a byte."""

    status: int
    headers: Headers
    body: bytes

    def with_length(self) -> "Answer":
        """The same with a right ``Content-Length``; an answer that may have no body gets none."""
        rest = [(name, value) for name, value in self.headers if name.lower() != "content-length"]
        if self.status in {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}:
            return Answer(status=self.status, headers=rest, body=b"")
        length = ("Content-Length", str(len(self.body)))
        return Answer(status=self.status, headers=[*rest, length], body=self.body)


def encode(answer: Answer) -> bytes:
    """An answer as a ledger keeps it: a line of JSON, then the body as it is."""
    left_out = _OF_THE_CONNECTION | _OF_THE_FIRST_CALLER
    headers = [[name, value] for name, value in answer.headers if name.lower() not in left_out]
    head = json.dumps({"status": answer.status, "headers": headers}, separators=(",", ":"))
    return head.encode("ascii") + b"\n" + answer.body


def decode(kept: bytes) -> Answer:
    """What `encode` made, marked as a replay."""
    head, _, body = kept.partition(b"\n")
    said = json.loads(head)
    headers = [(str(name), str(value)) for name, value in said["headers"]]
    return Answer(status=int(said["status"]), headers=[*headers, REPLAYED], body=body).with_length()


def problem(status: HTTPStatus, name: str, title: str, detail: str, *, retry_after: int | None = None) -> Answer:
    """A refusal of ours."""
    said = {"type": f"{PAGE}#{name}", "title": title, "status": status.value, "detail": detail}
    headers = [("Content-Type", "application/problem+json"), ("Link", f'<{PAGE}>; rel="describedby"')]
    if retry_after is not None:
        headers.append(("Retry-After", str(retry_after)))
    return Answer(status=status.value, headers=headers, body=json.dumps(said).encode()).with_length()


def missing() -> Answer:
    """There is no key, and this endpoint wants one."""
    detail = "this operation needs an Idempotency-Key header: a new key for each intent, the same for each retry of it"
    return problem(HTTPStatus.BAD_REQUEST, "key-missing", "Idempotency-Key is missing", detail)


def invalid(reason: str) -> Answer:
    """The header cannot be read."""
    return problem(HTTPStatus.BAD_REQUEST, "key-invalid", "Idempotency-Key cannot be used", f"the key: {reason}")


def too_large(limit: int) -> Answer:
    """The body is longer than what is compared."""
    detail = f"a request under an Idempotency-Key may have {limit} bytes"
    return problem(HTTPStatus(413), "body-too-large", "The request is too large", detail)


def cut_off() -> Answer:
    """The body is shorter than it says; its caller has probably gone."""
    detail = "the body ended early; nothing was done"
    return problem(HTTPStatus.BAD_REQUEST, "body-cut-off", "The request is not complete", detail)


def running(seconds: int) -> Answer:
    """The first request has not been answered yet."""
    title = "A request with this Idempotency-Key is being carried out"
    detail = "nothing was done by this one; send it again and get the answer of the first"
    return problem(HTTPStatus.CONFLICT, "request-running", title, detail, retry_after=seconds)


def reused() -> Answer:
    """The key stands for another request."""
    title = "Idempotency-Key was used for another request"
    detail = "this request differs from the first one with its key in method, path, query or body; nothing was done"
    return problem(HTTPStatus(422), "key-reused", title, detail)


def held() -> Answer:
    """A person has to say what became of it."""
    detail = "what became of the first request with this key is being looked at; nothing was done by this one"
    return problem(HTTPStatus.CONFLICT, "request-held", "The outcome of this request is not known yet", detail)


def not_kept() -> Answer:
    """The work is done, and its answer was too long to be kept."""
    title = "The request was carried out, and its answer was not kept"
    detail = "the first request with this key has succeeded; its answer was too long, or it was redacted"
    return problem(HTTPStatus.CONFLICT, "answer-not-kept", title, detail)


def away(seconds: int = 1) -> Answer:
    """Nothing is known to have been done."""
    detail = "the request can be sent again with the same key"
    return problem(
        HTTPStatus.SERVICE_UNAVAILABLE, "try-again", "The request could not be completed", detail, retry_after=seconds
    )
