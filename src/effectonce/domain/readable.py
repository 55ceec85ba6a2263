"""A key's parts as text for people, such that two different keys of one template never read alike.

Numbers, dates, UUIDs and plain words stand as they are. Text that could be taken for one of those, or could run
into what follows it, is quoted; anything else that could is put in angle brackets. The text is for eyes and searches:
the digest, not this, is what names an effect.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Final
from uuid import UUID

from effectonce.domain.canonical import MICROSECOND, decimal_parts, encode_part
from effectonce.domain.plain import Record, item_name, reduced

_WORD: Final = re.compile(r"[^\W\d][\w.@/+-]*")
_LOOKS_TYPED: Final = re.compile(r"True|False|None|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PLAIN_TEXT: Final = re.compile(r"[\w.:@/+#~-]+")
_PLAIN_EXPONENT: Final = 30
_DECIMAL_BELOW: Final = 10**600


def readable(value: Any, before: str | None) -> str:
    """Write one part; *before* is the character that follows it, "" at the end, None if another part does."""
    if type(value) is str:
        return _text(value, before)
    way = _TOKENS.get(type(value))
    if way is not None:
        token = way(value)
        return token if before == "" or (before and before not in token) else f"<{token}>"
    brackets = _BRACKETS.get(type(value))
    if brackets is not None:
        return brackets(value)
    return readable(reduced(value), before)


def readable_text(value: str) -> str:
    """Write text that can be nothing else than text: as it is, quoted only if it has unusual characters."""
    return value if _PLAIN_TEXT.fullmatch(value) else repr(value)


def _text(value: str, before: str | None) -> str:
    bare = before is not None and _WORD.fullmatch(value) and not _LOOKS_TYPED.fullmatch(value)
    return value if bare and not (before and before in value) else repr(value)


def _number(value: int) -> str:
    return str(value) if -_DECIMAL_BELOW < value < _DECIMAL_BELOW else hex(value)


def _decimal(value: Decimal) -> str:
    sign, digits, exponent = decimal_parts(value)
    if 0 <= exponent < _PLAIN_EXPONENT:
        return f"{sign}{digits}{'0' * exponent}.0"
    if -_PLAIN_EXPONENT < exponent < 0:
        padded = digits.rjust(1 - exponent, "0")
        return f"{sign}{padded[:exponent]}.{padded[exponent:]}"
    return f"{sign}{digits}E{exponent}"


def _datetime(value: datetime) -> str:
    if value.utcoffset() is None:
        return _compact(value)
    try:
        return f"{_compact(value.astimezone(UTC))}Z"
    except OverflowError:
        return encode_part(value).decode()


def _compact(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat()
    return text.replace("-", "").replace(":", "")


_TOKENS: Final[dict[type, Callable[[Any], str]]] = {
    int: _number,
    bool: str,
    NoneType: str,
    UUID: str,
    Decimal: _decimal,
    date: date.isoformat,
    datetime: _datetime,
}


def _list(value: list[Any] | tuple[Any, ...]) -> str:
    return f"[{','.join(readable(item, ',') for item in value)}]"


def _dict(value: dict[Any, Any]) -> str:
    pairs = sorted((readable(item_name(name), ":"), readable(item, ",")) for name, item in value.items())
    return f"{{{','.join(f'{name}:{item}' for name, item in pairs)}}}"


def _record(value: Record) -> str:
    return f"<{value.name} {_dict(dict(value.values))}>"


_BRACKETS: Final[dict[type, Callable[[Any], str]]] = {
    list: _list,
    tuple: _list,
    dict: _dict,
    Record: _record,
    bytes: lambda value: f"<{value!r}>",
    time: lambda value: f"<{value.isoformat()}>",
    timedelta: lambda value: f"<{value // MICROSECOND} us>",
}
