"""Made-up arguments, and the trip that they make to a worker."""

import copy
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

from hypothesis import strategies as st
from kombu.utils.json import dumps, loads

HOSTILE = st.sampled_from(
    [
        *("", ":", ",", "'", '"', "{", "}", "[1]", "\\", "\0", "\n", "#", "~", "<1>", "tick=", "k:1"),
        *("1", "-1", "True", "None", "null", "nan", "2026-11-29", "00000000-0000-0000-0000-000000000000"),
        *("s1:a", "i1;", "l0:", "d1:", "\ud800", "\udc00\ud800", "\ud83d\ude00", "é", "e\u0301"),
    ]
)

TEXT = HOSTILE | st.text(st.characters(), max_size=8) | st.lists(HOSTILE, max_size=4).map("".join)
NAMES = TEXT.filter(bool)
ZONES: st.SearchStrategy[tzinfo] = st.sampled_from(
    [UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=11))]
)
INSTANTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=ZONES)  # noqa: DTZ001 - bounds

SPLITS = st.tuples(NAMES, NAMES, NAMES, NAMES).map(lambda t: ((t[0], t[1], t[2] + t[3]), (t[0] + t[1], t[2], t[3])))
"""One text in three pieces, in two ways."""

SCALARS = st.one_of(
    TEXT,
    st.integers(),
    st.integers(min_value=2**53, max_value=2**300) | st.integers(max_value=-(2**53)),
    st.booleans(),
    st.none(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.uuids(),
    st.dates(),
    st.times(timezones=ZONES | st.none()),
    st.datetimes() | INSTANTS,
    st.binary(max_size=8),
)
"""What a key is made of, and kombu's JSON can carry."""

VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(NAMES, inner, max_size=4)
    ),
    max_leaves=8,
)

LOOSE = st.recursive(
    SCALARS | st.floats(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
"""What an argument may be too: floats."""


def carried(value: Any) -> Any:
    """What *value* is at a worker."""
    return loads(dumps(value))


def shuffled(value: Any) -> Any:
    """*value* with the items of all dicts in another order."""
    if isinstance(value, dict):
        return {name: shuffled(item) for name, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, (list, tuple)) else copy.copy(value)


def meaning(value: Any) -> Any:
    """What a value says, as something that is equal for equal meanings only: an oracle, slow and plain."""
    match value:
        case list() | tuple():
            return ("list", tuple(meaning(item) for item in value))
        case dict():
            return ("dict", frozenset((meaning(name), meaning(item)) for name, item in value.items()))
        case str():
            return ("str", value.encode("utf-16", "surrogatepass"))
        case set():
            return ("set", frozenset(meaning(item) for item in value))
        case float():
            return ("float", repr(value))
        case _ if getattr(value, "tzinfo", None) is not None and not hasattr(value, "year"):
            return ("time", value.isoformat())
        case _:
            return (type(value).__name__, getattr(value, "tzinfo", None) is None, value)
