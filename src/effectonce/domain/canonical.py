"""One way to write a value as bytes: the same for one meaning, never the same for two.

Each value begins with a letter for its type and says where it ends, so no text inside one can pass for another:
``1``, ``"1"`` and ``True`` differ, and so do ``["a", "b"]`` and ``["a,b"]``. Text is not normalized: two strings that
look alike are two. Dicts are written in the order of their encoded names. Decimals are equal when their numbers are,
instants when they are the same instant. JSON itself will not do: whole numbers above 2**53 lose digits in it.

These bytes are only hashed. A change to them renames every effect there is: it needs a new version in the
personalization of the digests, and a way for the old ones.
"""

from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Final
from uuid import UUID

from effectonce.domain.plain import NotPlain, Record, item_name, kind, reduced

EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - offsets are taken off before it is
MICROSECOND: Final = timedelta(microseconds=1)

Way = Callable[[Any], bytes]


def encode_text(value: str) -> bytes:
    """Encode text. Halves of a surrogate pair are joined, as JSON joins them; a lone one stays itself."""
    try:
        written = value.encode()
    except UnicodeEncodeError:
        joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        written = joined.encode("utf-8", "surrogatepass")
    return b"s%d:%b" % (len(written), written)


def encode_optional(value: str | None) -> bytes:
    """Encode text that may be missing; missing is not empty."""
    return b"n" if value is None else encode_text(value)


def decimal_parts(value: Decimal) -> tuple[str, str, int]:
    """Sign, digits without zeros at either end, and exponent of a finite decimal; not rounded by any context."""
    negative, digits, exponent = value.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    stripped = written.rstrip("0")
    if not stripped:
        return "", "0", 0
    return "-" if negative else "", stripped, int(exponent) + len(written) - len(stripped)


def _decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return b"D%b;" % str(value).encode()
    sign, digits, exponent = decimal_parts(value)
    return b"D%b%bE%d;" % (sign.encode(), digits.encode(), exponent)


def _finite_decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        message = f"{kind(value)} that is no number is equal to nothing, not even to itself"
        raise NotPlain(message)
    return _decimal(value)


def _datetime(value: datetime) -> bytes:
    offset = value.utcoffset()
    micros = (value.replace(tzinfo=None) - EPOCH - (offset or timedelta())) // MICROSECOND
    return b"%c%x;" % (b"w" if offset is None else b"z", micros)


_EXACT: Final[dict[type, Way]] = {
    str: encode_text,
    int: lambda value: b"i%x;" % value,
    bool: lambda value: b"T" if value else b"F",
    NoneType: lambda _: b"n",
    UUID: lambda value: b"u%b" % value.bytes,
    bytes: lambda value: b"b%d:%b" % (len(value), value),
    Decimal: _decimal,
    datetime: _datetime,
    date: lambda value: b"a%x;" % value.toordinal(),
    time: lambda value: b"t%b;" % value.isoformat().encode(),
    timedelta: lambda value: b"p%x;" % (value // MICROSECOND),
}


class Encoder:
    """Encodes values. A *loose* one, for fingerprints, takes floats and sets too, which name no effect."""

    __slots__ = ("_loose", "_ways")

    def __init__(self, *, loose: bool) -> None:
        self._loose = loose
        self._ways: dict[type, Way] = {
            **_EXACT,
            list: self._list,
            tuple: self._list,
            dict: self._dict,
            Record: self._record,
            float: self._float,
            frozenset: self._set,
        }
        if not loose:
            self._ways[Decimal] = _finite_decimal

    def encode(self, value: Any) -> bytes:
        """Encode *value*; raises NotPlain when nothing stable can stand for it."""
        way = self._ways.get(type(value))
        return self.encode(reduced(value)) if way is None else way(value)

    def _list(self, value: list[Any] | tuple[Any, ...]) -> bytes:
        return b"l%d:%b" % (len(value), b"".join(map(self.encode, value)))

    def _dict(self, value: dict[Any, Any]) -> bytes:
        pairs = sorted((self.encode(item_name(name)), self.encode(item)) for name, item in value.items())
        if not self._loose and len(dict(pairs)) < len(pairs):
            message = "two items of a dict in it have names that become one in JSON"
            raise NotPlain(message)
        return b"d%d:%b" % (len(pairs), _joined(pairs))

    def _record(self, value: Record) -> bytes:
        return b"c" + encode_text(value.name) + self._dict(dict(value.values))

    def _float(self, value: float) -> bytes:
        if not self._loose:
            message = "a float has no certain text; use a Decimal, or whole units such as cents"
            raise NotPlain(message)
        return b"f%b;" % repr(value).encode()

    def _set(self, value: frozenset[Any]) -> bytes:
        if not self._loose:
            message = "a set has no order; give a sorted list"
            raise NotPlain(message)
        items = sorted(set(map(self.encode, value)))
        return b"S%d:%b" % (len(items), b"".join(items))


def _joined(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    return b"".join(part for pair in pairs for part in pair)


encode_part: Final = Encoder(loose=False).encode
"""Encode a part of a key: strict."""

encode_argument: Final = Encoder(loose=True).encode
"""Encode an argument for a fingerprint: floats and sets too."""

EMPTY: Final = frozenset({b"n", b"s0:", b"b0:"})
"""What None, empty text and empty bytes become: parts that name nothing."""
