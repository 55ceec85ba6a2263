import dataclasses
import enum
from collections import OrderedDict, defaultdict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from effectonce.domain.policies import MESSAGE, Leased, Transactional
from effectonce.errors import KeyInvalid, KeyMissing, PolicyInvalid
from tests.unit.domain.calls import key_for, key_of, one_part, source

ID = UUID("0b9c2f70-84d6-4d38-8f07-90534da92a24")
CHARGE = Transactional("charge:{order_id}:{amount}")


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


def charge(order_id: int, amount: int = 5, *, note: str = "") -> None: ...


def test_every_way_to_write_a_call_gives_one_key() -> None:
    made = source(charge, CHARGE)
    keys = [
        key_of(made, 1),
        key_of(made, 1, 5),
        key_of(made, 1, amount=5),
        key_of(made, amount=5, order_id=1),
        key_of(made, order_id=1, note="anything"),
    ]
    assert len({key.digest for key in keys}) == 1
    assert {str(key) for key in keys} == {"charge:1:5"}


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"order_id": 1}), ((1,), {"x": 1})])
def test_a_call_that_does_not_fit_fails_as_its_body_would(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        key_of(source(charge, CHARGE), *args, **kwargs)


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
    ids=repr,
)
def test_a_part_is_readable(value: Any, text: str) -> None:
    assert str(key_for("k:{part}", value)) == text


def test_values_of_different_types_are_different_effects() -> None:
    values: list[Any] = [
        1, "1", True, Decimal(1), [1], ["1"], {"1": 1}, b"1", "True", timedelta(microseconds=1), 1 << 70, (1 << 70) + 1, (1 << 64) + 1, "i1;",
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
    ids=repr,
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
    ids=repr,
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


def test_neighbours_cannot_be_mistaken_for_each_other() -> None:
    def two(a: Any, b: Any) -> None: ...

    together = source(two, Leased("{a}{b}"))
    apart = source(two, Leased("k:{a}:{b}"))
    assert len({key_of(together, *pair).digest for pair in (("ab", "c"), ("a", "bc"), (1, 23), (12, 3))}) == 4
    assert key_of(together, 1, 23).text == "shop.charge:<1>23"
    assert key_of(together, "ab", "c").text == "shop.charge:'ab'c"
    assert key_of(apart, "a:b", "c") != key_of(apart, "a", "b:c")
    assert key_of(apart, "a:b", "c").text == "k:'a:b':c"


def test_variadic_arguments_are_lists_and_dicts() -> None:
    def gather(first: int, *rest: int, **named: int) -> None: ...

    made = source(gather, Leased("k:{first}:{rest}:{named}"))
    assert str(key_of(made, 1, 2, 3, x=4)) == "k:1:[2,3]:{x:4}"
    assert str(key_of(made, 1)) == "k:1:[]:{}"
    assert str(key_of(source(gather, Leased("k:{rest[0]}:{named[x]}")), 1, 2, x=4)) == "k:2:4"


def test_a_callable_gets_the_same_arguments() -> None:
    def gather(first: int, /, second: int = 2, *rest: int, third: int = 3, **named: int) -> None: ...

    def all_of(*args: int, **kwargs: int) -> tuple[Any, ...]:
        return (*args, *kwargs.items())

    assert str(key_of(source(charge, Leased(lambda order_id: order_id)), 1)) == "shop.charge:1"
    assert (
        str(key_of(source(charge, Leased(lambda note, order_id: (note, order_id))), 1, note="n")) == "shop.charge:n:1"
    )
    assert key_of(source(charge, Leased(lambda a, b, **_: (a, b))), 1).text == "shop.charge:1:5"
    assert key_of(source(gather, Leased(all_of)), 1).text == "shop.charge:1:2:[third,3]"
    assert key_of(source(gather, Leased(all_of)), 1, 5, 6, x=7).text == "shop.charge:1:5:6:[third,3]:[x,7]"


@pytest.mark.parametrize("made", [None, "", (), ("a", None), ("",), 1.5, object(), [{1}]], ids=repr)
def test_a_callable_that_makes_no_key_is_refused(made: Any) -> None:
    with pytest.raises(KeyInvalid):
        key_for(lambda part: (part, made)[1], 1)


def test_what_a_callable_raises_passes() -> None:
    with pytest.raises(ZeroDivisionError):
        key_for(lambda part: 1 // part, 0)


def test_where_a_key_comes_from_is_part_of_it() -> None:
    every = source(one_part, Leased())
    keys = [
        key_of(source(one_part, Leased("{part}")), "x"),
        key_of(source(one_part, Leased(lambda part: part)), "x"),
        key_of(source(one_part, Leased(MESSAGE)), "x", headers={"message_id": "x"}),
        *(key_of(every, "x", headers={origin: "x"}) for origin in ("at_call", "http", "tick", "parent")),
    ]
    assert len({key.digest for key in keys}) == len(keys)
    assert len({str(key) for key in keys}) == len(keys) - 2, "a template, a callable and a call may read alike"


def test_a_task_without_a_key_is_named_by_its_call_in_order() -> None:
    made = source(one_part, Leased())
    headers = {"parent": "ab#1", "tick": "2026-11-29T10:00:00+00:00", "http": "h1", "at_call": "c1"}
    seen = []
    while headers:
        seen.append(key_of(made, 1, headers=headers).text)
        headers.popitem()
    assert [text.split(" arguments")[0] for text in seen] == [
        "shop.charge:c1",
        "shop.charge http=h1",
        "shop.charge tick=2026-11-29T10:00:00+00:00",
        "shop.charge parent=ab#1",
    ]
    with pytest.raises(KeyMissing):
        key_of(made, 1, headers={"message_id": "m"})


def test_an_http_key_is_completed_by_the_arguments() -> None:
    made = source(one_part, Leased())
    assert key_of(made, 1, headers={"http": "h"}) != key_of(made, 2, headers={"http": "h"})
    assert key_of(made, 1, headers={"http": "h"}) == key_of(made, part=1, headers={"http": "h"})


def test_a_message_key_needs_a_message() -> None:
    with pytest.raises(KeyMissing):
        key_of(source(one_part, Leased(MESSAGE)), 1)


def test_a_key_at_the_call_is_refused_where_the_task_names_its_own() -> None:
    for key in ("k:{part}", MESSAGE, lambda part: part):
        with pytest.raises(KeyInvalid, match="key_at_call=True"):
            key_of(source(one_part, Leased(key)), 1, headers={"at_call": "c", "message_id": "m"})


def test_a_key_at_the_call_that_was_promised_must_come() -> None:
    for key in ("k:{part}", MESSAGE, None):
        made = source(one_part, Leased(key, key_at_call=True))
        assert key_of(made, 1, headers={"at_call": "c 1"}).text == "shop.charge:'c 1'"
        with pytest.raises(KeyMissing):
            key_of(made, 1, headers={"message_id": "m", "http": "h", "tick": "t", "parent": "p"})


@pytest.mark.parametrize("header", ["at_call", "http", "tick", "parent", "generation"])
@pytest.mark.parametrize("value", ["", 3, ["x"]], ids=repr)
def test_a_header_that_is_no_text_is_refused(header: str, value: Any) -> None:
    with pytest.raises(KeyInvalid):
        key_of(source(one_part, Leased()), 1, headers={"parent": "p", header: value})


def test_a_tick_names_an_effect_only_where_a_schedule_sent_it() -> None:
    made = source(charge, Leased("report:{tick}"))
    assert key_of(made, 1, headers={"tick": "2026-11-29"}).text == "report:'2026-11-29'"
    with pytest.raises(KeyInvalid, match="sent by no schedule"):
        key_of(made, 1)

    def own(tick: int) -> None: ...

    assert key_of(source(own, Leased("report:{tick}")), 3, headers={"tick": "2026"}).text == "report:3"


def test_namespace_scope_generation_and_tick_are_part_of_the_key() -> None:
    made = source(one_part, Leased("k:{part}"))
    other = source(one_part, Leased("k:{part}", scope="billing"))
    keys = [
        key_of(made, 1),
        key_of(other, 1),
        key_of(made, 1, headers={"namespace": "acme"}),
        key_of(made, 1, headers={"generation": "acme"}),
        key_of(made, 1, headers={"tick": "acme"}),
        key_of(made, 1, headers={"namespace": "a", "generation": "cme"}),
        key_of(made, 1, headers={"namespace": "ac", "generation": "me"}),
    ]
    assert len({key.digest for key in keys}) == len(keys)
    assert len({key.idempotency_key("mail") for key in keys}) == len(keys)
    whole = key_of(made, 1, headers={"namespace": "acme", "generation": "backfill 2026", "tick": "t1"})
    assert str(whole) == "k:1 tick=t1 again='backfill 2026' namespace=acme"


def test_a_shared_scope_is_a_shared_key() -> None:
    def renamed(number: int) -> None: ...

    mine = source(one_part, Leased("k:{part}", scope="billing"))
    assert key_of(mine, 1) == key_of(source(renamed, Transactional("k:{number}", scope="billing")), 1)


def test_a_long_key_is_cut_and_ends_with_its_digest() -> None:
    key = key_for("k:{part}", "x" * 10_000)
    assert len(str(key)) < 300
    assert str(key).endswith(key.digest.hex())


def test_the_digests_are_those_of_the_first_release() -> None:
    """A change here renames every effect in every ledger; see `canonical`."""
    key = key_of(source(charge, CHARGE), 42, 7)
    assert key.digest.hex() == "6eb72efbda12e3fa918fe9699a546012"
    assert str(key.idempotency_key("mail")) == "962a97da-a3b4-8fa1-9133-480917765592"


def test_an_idempotency_key_is_a_uuid_of_version_8() -> None:
    made = {key_for("k:{part}", at).idempotency_key(step) for at in range(100) for step in ("a", "b")}
    assert len(made) == 200
    assert {(one.version, one.variant) for one in made} == {(8, "specified in RFC 4122")}


def test_a_bad_policy_compiles_to_nothing() -> None:
    with pytest.raises(PolicyInvalid):
        source(one_part, Leased("k:{prt}"))
