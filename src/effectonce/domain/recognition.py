"""The way back from a readable key to what it names, so that an entry is found by its digest and not by reading all.

`readable` writes a part such that no other part of the same place reads like it; here it is read again. What is read is
written once more and compared, so a wrong guess names nothing. Lists, dicts, records and times of day are not read: for
keys with those the ledger itself is searched.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

from effectonce.domain.readable import readable, readable_text

_QUOTED: Final = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_BRACKETED: Final = rf"<(?:b(?:{_QUOTED})|[^<>]*)>"
TOKEN: Final = rf"{_QUOTED}|{_BRACKETED}|[^'\"<>\[\]{{}}]+?"
"""One part, as a pattern: quoted, in angle brackets, or bare."""

_SUFFIX: Final = "".join(rf"(?: {name}=(?P<{name}>{_QUOTED}|\S+))?" for name in ("tick", "again", "namespace"))
_WHOLE: Final = re.compile(rf"(?P<body>.*?){_SUFFIX}", re.DOTALL)
_ORDINARY: Final = re.compile(rf"(?P<body>.*){_SUFFIX}", re.DOTALL)
_CUT: Final = re.compile(r".*\.\.\. (?P<digest>[0-9a-f]{32})", re.DOTALL)
_PARTS: Final = re.compile(rf"(?:{_QUOTED}|{_BRACKETED}|[^:'\"<>\[\]{{}}]+)")


class Unreadable(Exception):
    """The text is not what such a part would be written as."""


class Written(NamedTuple):
    """A readable key, taken apart: what names the effect, and what was added to it."""

    body: str
    tick: str | None
    generation: str | None
    namespace: str


def written(text: str) -> Iterator[Written]:
    """All ways to take a readable key apart; a tick may be an addition, or what the key is made of."""
    seen = set()
    for pattern in (_WHOLE, _ORDINARY):
        matched = pattern.fullmatch(text)
        if matched is None:
            continue
        try:
            tick, again, namespace = (_optional(matched[name]) for name in ("tick", "again", "namespace"))
        except Unreadable:
            continue
        found = Written(matched["body"], tick, again, namespace or "")
        if found not in seen:
            seen.add(found)
            yield found


def digest_in(text: str) -> bytes | None:
    """The digest that stands at the end of a key which was too long to be written whole."""
    matched = _CUT.fullmatch(text)
    return bytes.fromhex(matched["digest"]) if matched else None


def read_text(token: str) -> str:
    """What `readable_text` wrote; raises Unreadable."""
    value = _literal(token) if token[:1] in {"'", '"'} else token
    if not isinstance(value, str) or readable_text(value) != token:
        raise Unreadable
    return value


def read_part(token: str, before: str | None) -> Any:
    """What `readable` wrote as one part in this place; raises Unreadable."""
    inner = token[1:-1] if token.startswith("<") else token
    for reader in _READERS:
        try:
            value = reader(inner)
        except (ValueError, ArithmeticError, SyntaxError):
            continue
        if value is not None and readable(value, before) == token:
            return value
    raise Unreadable


def split(text: str) -> list[tuple[str, str]]:
    """Parts with a colon between them, each with what follows it; raises Unreadable."""
    tokens = _PARTS.findall(text)
    if ":".join(tokens) != text:
        raise Unreadable
    return [(token, ":" if at < len(tokens) else "") for at, token in enumerate(tokens, 1)]


def _optional(token: str | None) -> str | None:
    return None if token is None else read_text(token)


def _literal(token: str) -> Any:
    try:
        return literal_eval(token)
    except (ValueError, SyntaxError):
        raise Unreadable from None


def _instant(token: str) -> datetime:
    aware = token.endswith("Z")
    found = datetime.fromisoformat(token.removesuffix("Z"))
    return found.replace(tzinfo=UTC) if aware else found


_READERS: Final[tuple[Callable[[str], Any], ...]] = (
    lambda token: int(token, 16 if "x" in token else 10),
    {"True": True, "False": False}.get,
    UUID,
    date.fromisoformat,
    _instant,
    Decimal,
    lambda token: literal_eval(token) if token[:1] in {"'", '"', "b"} and token[-1] in {"'", '"'} else token,
)
