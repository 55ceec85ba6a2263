"""What a value is once a serializer has carried it.

A key is taken from the arguments as a worker sees them. JSON turns a tuple into a list, an ``IntEnum`` into its number,
a dict's whole-number keys into text; kombu gives dates, decimals and UUIDs back as what they were. So a value is first
reduced to the one exact type that arrives at the other side. What has no such type is refused: its text could differ
from one process to the next, and then one effect would have two keys.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import FunctionType, MethodType
from typing import Any, Final
from uuid import UUID

EMPTY_PART: Final = "it is empty"
TOO_DEEP: Final = "it is nested too deeply, or holds itself"


class NotPlain(Exception):
    """A value that cannot stand for an effect; its text is the reason, for people."""


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass instance: the name of its class, and the fields that count when two are compared."""

    name: str
    values: Mapping[str, Any]


def _plain_datetime(value: datetime) -> datetime:
    return datetime(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, value.tzinfo,
        fold=value.fold,
    )  # fmt: skip


_BASES: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__index__),
    (float, float.__float__),
    (list, lambda value: list(list.__iter__(value))),
    (tuple, lambda value: list(tuple.__iter__(value))),
    (dict, dict),
)
"""What JSON knows by itself. Subclasses of these arrive as these, enums among them."""

_TYPED: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (datetime, _plain_datetime),
    (date, lambda value: date(value.year, value.month, value.day)),
    (time, lambda value: time.fromisoformat(time.isoformat(value))),
    (timedelta, lambda value: timedelta(value.days, value.seconds, value.microseconds)),
    (Decimal, Decimal),
    (UUID, lambda value: UUID(int=value.int)),
    (bytes, lambda value: bytes(memoryview(value))),
    (bytearray, bytes),
    (set, frozenset),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
)
"""What kombu's JSON, or pickle, gives back as what it was; a datetime before a date, which it also is."""


def reduced(value: Any) -> Any:
    """Make of a value whose exact type is not a plain one the plain value that it stands for.

    Raises NotPlain for what has no text that is the same in every process.
    """
    for base, plain in _BASES:
        if isinstance(value, base):
            return plain(value)
    reducer = getattr(type(value), "__json__", None)
    if reducer is not None:
        return reducer(value)
    for base, plain in _TYPED:
        if isinstance(value, base):
            return plain(value)
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        return Record(name, {each.name: getattr(value, each.name) for each in fields(value) if each.compare})
    raise NotPlain(_why_not(value))


def item_name(key: Any) -> Any:
    """Make of a dict's key what JSON makes of it: text, where it can."""
    match key:
        case str():
            return str.__str__(key)
        case None:
            return "null"
        case bool():
            return "true" if key else "false"
        case int():
            return format(int.__index__(key), "d") if abs(key) < _DECIMAL_BELOW else int.__index__(key)
        case float():
            return _JSON_NUMBERS.get(text := float.__repr__(key), text)
        case _:
            return key


_DECIMAL_BELOW: Final = 10**600
"""Numbers of more digits may be forbidden to be written in decimal, by a limit that is a process's own setting."""

_JSON_NUMBERS: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def kind(value: Any) -> str:
    """Name a value's type for people, without showing the value."""
    if value is None:
        return "None"
    name = type(value).__qualname__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _why_not(value: Any) -> str:
    if isinstance(value, type):
        return "it is a class"
    if isinstance(value, (FunctionType, MethodType, type(len))):
        return "it is a function, and nothing is called in a template"
    return f"{kind(value)} has no text that is the same in every process; name something stable in it, such as its id"
