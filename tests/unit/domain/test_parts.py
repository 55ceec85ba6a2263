import dataclasses
import enum
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from effectonce.errors import KeyInvalid
from tests.unit.domain.calls import key_for, named

ID = UUID("0b9c2f70-84d6-4d38-8f07-90534da92a24")


class Color(enum.Enum):
    RED = "red"


class Size(enum.IntEnum):
    SMALL = 1


class Word(enum.StrEnum):
    HI = "hi"


class Text(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "something else"


@dataclasses.dataclass
class Point:
    x: int
    y: int
    seen: int = dataclasses.field(default=0, compare=False)


class Order:
    """Its text is its address."""

    def __init__(self, id: int) -> None:  # noqa: A002 - as models have it
        self.id = id

    def total(self) -> int:
        return self.id


class Pair(NamedTuple):
    a: int
    b: int


class Reducible:
    def __json__(self) -> dict[str, int]:
        return {"a": 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "k:1"),
        (-1, "k:-1"),
        ("1", "k:'1'"),
        (True, "k:True"),
        ("True", "k:'True'"),
        ("None", "k:'None'"),
        (Decimal(1), "k:1.0"),
        (Decimal("1.50"), "k:1.5"),
        (Decimal("-0.001"), "k:-0.001"),
        (Decimal("1E+40"), "k:1E40"),
        (Decimal("-0"), "k:0.0"),
        ("bob@example.org", "k:bob@example.org"),
        ("größe", "k:größe"),
        ("a:b", "k:'a:b'"),
        ("it's", 'k:"it\'s"'),
        ("\0", "k:'\\x00'"),
        ("\ud800", "k:'\\ud800'"),
        (ID, f"k:{ID}"),
        (str(ID), f"k:'{ID}'"),
        (date(2026, 11, 29), "k:2026-11-29"),
        (datetime(2026, 11, 29, 10, 0, 0, 1), "k:20261129T100000.000001"),  # noqa: DTZ001 - a naive one
        (datetime(2026, 11, 29, 10, tzinfo=UTC), "k:20261129T100000Z"),
        (time(10, 0), "k:<10:00:00>"),
        (timedelta(seconds=1), "k:<1000000 us>"),
        (b"ab", "k:<b'ab'>"),
        ([1, "a", None, ("x", ":")], "k:[1,a,None,[x,':']]"),
        ({"b": 1, "a": [True]}, "k:{a:[True],b:1}"),
        ({2: "x"}, "k:{'2':x}"),
        ([], "k:[]"),
        (Color.RED, "k:red"),
        (Size.SMALL, "k:1"),
        (Word.HI, "k:hi"),
        (Text("plain"), "k:plain"),
        (Point(1, 2), f"k:<{Point.__module__}.Point {{x:1,y:2}}>"),
        (2**70, f"k:{2**70}"),
    ],
    ids=named,
)
def test_a_part_is_readable(value: Any, text: str) -> None:
    assert str(key_for("k:{part}", value)) == text


def test_values_of_different_types_are_different_effects() -> None:
    values: list[Any] = [
        1, "1", True, Decimal(1), [1], ["1"], {"1": 1}, b"1", "True", timedelta(microseconds=1),
        1 << 70, (1 << 70) + 1, (1 << 64) + 1, "i1;",
        date(1970, 1, 2), datetime(1970, 1, 2), datetime(1970, 1, 2, tzinfo=UTC), time(0), ID, str(ID), ID.bytes,  # noqa: DTZ001
        "é", "e\u0301", "\ud800", "\udc00", "\U00010000", "s1:1", {"a": {"b": 1}}, {"a": [["b", 1]]}, [[], []], [[[]]],
        Point(1, 2), {"x": 1, "y": 2},
    ]  # fmt: skip
    assert len({key_for("k:{part}", value).digest for value in values}) == len(values)


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ((1, 2), [1, 2]),
        (Pair(1, 2), [1, 2]),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        ({1: "x", None: "y", False: "z"}, {"false": "z", "null": "y", "1": "x"}),
        ({float("nan"): 1, float("-inf"): 2, 0.5: 3}, {"NaN": 1, "-Infinity": 2, "0.5": 3}),
        (Color.RED, "red"),
        (Size.SMALL, 1),
        (Word.HI, "hi"),
        (Text("plain"), "plain"),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("1E+2"), Decimal(100)),
        (Decimal("-0.0"), Decimal(0)),
        (bytearray(b"ab"), b"ab"),
        (datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2)))),
        (Reducible(), {"a": 1}),
        (Point(1, 2, seen=1), Point(1, 2, seen=2)),
        ("\ud83d\ude00", "\U0001f600"),
    ],
    ids=named,
)
def test_values_of_one_meaning_are_one_effect(value: Any, same: Any) -> None:
    assert key_for("k:{part}", value) == key_for("k:{part}", same)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty"),
        ("", "empty"),
        (b"", "empty"),
        (1.0, "float"),
        ([1.0], "float"),
        ({"a": {"b": 1.0}}, "float"),
        ({1, 2}, "a set has no order"),
        (frozenset(), "a set has no order"),
        (object(), "same in every process"),
        (Order(1), "an Order has no text that is the same in every process"),
        ([Order(1)], "same in every process"),
        (Order(1).total, "nothing is called"),
        (len, "nothing is called"),
        (Order, "it is a class"),
        (Decimal("NaN"), "no number"),
        (Decimal("Infinity"), "no number"),
        ({1: "a", "1": "b"}, "become one in JSON"),
        (iter([1]), "same in every process"),
    ],
    ids=named,
)
def test_a_part_that_cannot_name_an_effect_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(KeyInvalid, match=reason) as raised:
        key_for("k:{part}", value)
    assert (raised.value.facts["task"], raised.value.facts["part"]) == ("shop.charge", "part")


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(KeyInvalid, match="holds itself"):
        key_for("k:{part}", value)
    with pytest.raises(KeyInvalid, match="holds itself"):
        key_for(lambda part: part, value)


def test_a_number_longer_than_python_prints_is_still_a_name() -> None:
    assert key_for("k:{part}", 10**5000) != key_for("k:{part}", 10**5000 + 1)
    assert key_for("k:{part}", {10**5000: 1}) != key_for("k:{part}", {10**5000 + 1: 1})
    assert len(str(key_for("k:{part}", 10**5000))) < 300


def test_instants_at_the_edge_of_time_are_names() -> None:
    edge = datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))
    assert key_for("k:{part}", edge) != key_for("k:{part}", edge.replace(microsecond=0))


def test_a_path_is_followed() -> None:
    assert str(key_for("k:{part.id}", Order(7))) == "k:7"
    assert str(key_for("k:{part[0]}", [7])) == "k:7"
    assert str(key_for("k:{part[a b].id}", {"a b": Order(7)})) == "k:7"
    assert str(key_for("k:{part[_id]}", {"_id": 7})) == "k:7"
    assert key_for("k:{part[1]}", {1: 7}) == key_for("k:{part[1]}", {"1": 7})


@pytest.mark.parametrize(
    ("template", "value", "reason"),
    [
        ("k:{part.id}", {"id": 1}, r"a dict has no attribute 'id'; an item of a dict is written \[id\]"),
        ("k:{part.nr}", Order(1), "an Order has no attribute 'nr'"),
        ("k:{part[a]}", {"b": 1}, r"a dict has no item \[a\]"),
        ("k:{part[1]}", [1], r"a list has no item \[1\]"),
        ("k:{part[a]}", [1], r"a list has no item \[a\]"),
        ("k:{part[0]}", 1, r"an int has no item \[0\]"),
        ("k:{part[0]}", None, r"None has no item \[0\]"),
        ("k:{part.total}", Order(1), "nothing is called"),
        ("k:{part.items}", {"a": 1}, "nothing is called"),
        ("k:{part.id}", Order(None), "empty"),  # type: ignore[arg-type]
    ],
)
def test_a_path_that_leads_nowhere_is_refused(template: str, value: Any, reason: str) -> None:
    with pytest.raises(KeyInvalid, match=reason):
        key_for(template, value)


def test_looking_into_an_argument_does_not_change_it() -> None:
    value: defaultdict[str, list[int]] = defaultdict(list)
    with pytest.raises(KeyInvalid):
        key_for("k:{part[a]}", value)
    assert value == {}


class Instant(datetime):
    """As libraries for dates make them."""


def test_a_date_of_a_class_of_its_own_is_the_same_instant_in_each_of_its_parts() -> None:
    moment = datetime(2026, 11, 5, 1, 30, 17, 250, tzinfo=timezone(timedelta(hours=2)))
    whole = key_for("k:{part}", moment)
    assert key_for("k:{part}", Instant.fromisoformat(moment.isoformat())) == whole
    units = ("days", "hours", "minutes", "seconds", "microseconds")
    others = {
        key_for("k:{part}", Instant.fromisoformat((moment + timedelta(**{unit: 1})).isoformat())) for unit in units
    }
    assert len({key.digest for key in others} | {whole.digest}) == 6
