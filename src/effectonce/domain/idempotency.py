"""The `Idempotency-Key` of an HTTP request: what may stand in it, which effect it names, what an answer means for it.

After the IETF draft "The Idempotency-Key HTTP Header Field" (draft-ietf-httpapi-idempotency-key-header). The key names
an effect together with who calls, so nobody can ask for another one's answer. Method, path, query and body are the
fingerprint: the same key with another payload is an error and not a replay.
"""

import re
from collections.abc import Sequence
from enum import Enum
from hashlib import blake2b
from typing import Final

from effectonce.domain.canonical import encode_text

LONGEST: Final = 255
"""Characters that a key may have."""

_VERSION: Final = b"effectonce-http1"
_KEY: Final = re.compile(r"[!#-+\-.\x2f-\[\]-~]+")
"""Visible ASCII without the quotation mark, the comma and the backslash."""

_TRY_AGAIN: Final = frozenset({401, 403, 408, 409, 425, 429})
"""Refusals that say nothing about the request itself: the same one may be accepted later."""

_REDIRECTED: Final = 400
_FAILED: Final = 500


class KeyRefused(Exception):
    """The header cannot be read as one key; the text says why."""


def read_key(values: Sequence[str]) -> str | None:
    """The key in a request's ``Idempotency-Key`` headers; None without one. Raises KeyRefused.

    The draft writes it as a quoted string; most clients send it bare. Both are read, and mean the same key.
    """
    if not values:
        return None
    if len(values) > 1:
        message = "the header stands there more than once"
        raise KeyRefused(message)
    key = values[0].strip()
    if len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not key:
        message = "it is empty"
        raise KeyRefused(message)
    if len(key) > LONGEST:
        message = f"it is longer than {LONGEST} characters"
        raise KeyRefused(message)
    if _KEY.fullmatch(key) is None:
        message = "it has characters other than visible ASCII, or a quotation mark, comma or backslash"
        raise KeyRefused(message)
    return key


def digest_of(*, namespace: str, caller: str, key: str) -> bytes:
    """What a ledger knows the request by."""
    whole = b"".join(encode_text(part) for part in (namespace, caller, key))
    return blake2b(whole, digest_size=16, person=_VERSION).digest()


def readable(*, method: str, path: str, caller: str, key: str) -> str:
    """What people know it by. The caller may be known by a secret, so only a digest of it is shown."""
    who = blake2b(encode_text(caller), digest_size=4, person=_VERSION).hexdigest() if caller else "anybody"
    return f"http {method} {path[:80]} key={key} caller={who}"


def fingerprint_of(*, method: str, path: str, query: str, content_type: str, body: bytes) -> bytes:
    """What must be the same when the key comes again; *body* is a digest."""
    whole = b"".join(encode_text(part) for part in (method, path, query, content_type))
    return blake2b(whole + body, digest_size=12, person=_VERSION).digest()


class Meaning(Enum):
    """What becomes of a request because of how it was answered."""

    DONE = "its work commits, and its answer is kept"
    REFUSED = "its work is rolled back, and its answer is kept"
    FREE = "its work is rolled back, and its key is free again"


def meaning_of(status: int) -> Meaning:
    """The meaning of a status: what succeeded, what was refused for good, and what may go well another time."""
    if status < _REDIRECTED:
        return Meaning.DONE
    if status < _FAILED and status not in _TRY_AGAIN:
        return Meaning.REFUSED
    return Meaning.FREE
