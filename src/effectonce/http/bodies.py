"""The body of a request: read to its end and compared before the endpoint sees it, in memory or, if big, in a file.

Of a multipart body the boundary is left out of the digest: clients draw a new one for each attempt.
"""

import re
from hashlib import blake2b
from tempfile import SpooledTemporaryFile
from typing import Final

IN_MEMORY: Final = 1 << 20
"""Bytes of a body above which it is kept in a temporary file."""

CHUNK: Final = 1 << 16

_BOUNDARY: Final = re.compile(r';\s*boundary=(?:"([^"]+)"|([^\s;]+))', re.IGNORECASE)


class TooLarge(Exception):
    """The body is longer than it may be."""


class Digest:
    """A digest of bytes that come in pieces, without *boundary* wherever that stands."""

    def __init__(self, boundary: bytes) -> None:
        self._hash = blake2b(digest_size=16)
        self._boundary = boundary
        self._rest = b""

    def add(self, piece: bytes) -> None:
        """Take a piece."""
        if not self._boundary:
            self._hash.update(piece)
            return
        *parts, rest = (self._rest + piece).split(self._boundary)
        for part in parts:
            self._hash.update(part)
        kept = len(self._boundary) - 1
        self._hash.update(rest[:-kept] if kept else rest)
        self._rest = rest[-kept:] if kept else b""

    def end(self) -> bytes:
        """The digest of all pieces."""
        self._hash.update(self._rest)
        self._rest = b""
        return self._hash.digest()


class Body:
    """A body as it comes in; *limit* is bytes. Close it: it may be a file."""

    def __init__(self, content_type: str, *, limit: int) -> None:
        self._limit = limit
        self._digest = Digest(boundary_of(content_type).encode("latin-1", "replace"))
        self.file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by whoever reads it
        self.length = 0

    def add(self, piece: bytes) -> None:
        """Take a piece; raises TooLarge."""
        self.length += len(piece)
        if self.length > self._limit:
            raise TooLarge
        self._digest.add(piece)
        self.file.write(piece)

    def end(self) -> bytes:
        """Make it readable from its start; answers its digest."""
        self.file.seek(0)
        return self._digest.end()


def boundary_of(content_type: str) -> str:
    """The boundary that a content type names, empty without one."""
    found = _BOUNDARY.search(content_type)
    return "" if found is None else found[1] or found[2]


def without_boundary(content_type: str) -> str:
    """What a content type says besides."""
    return _BOUNDARY.sub("", content_type).strip()
