"""Two calls of different meaning never share a key; every way to write one call gives the same."""

import inspect
import json
import subprocess
import sys
from datetime import datetime, tzinfo
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from effectonce.domain.keys import Key, KeySource
from effectonce.domain.policies import MESSAGE, Leased, Transactional
from effectonce.errors import KeyInvalid
from tests.property.values import INSTANTS, NAMES, SPLITS, TEXT, VALUES, ZONES, carried, meaning, shuffled

ROOT = Path(__file__).parents[2]


def body(a: Any, b: Any = "b", *, c: Any = (1, 2)) -> None: ...


SIGNATURE = inspect.signature(body)
TEMPLATES = [
    KeySource.compile(Transactional(template), "shop.charge", SIGNATURE)
    for template in ("k:{a}:{b}:{c}", "{a}{b}{c}", "{a}-{b}x{c}", "{c},{b} {a}", "[{a}]'{b}'<{c}>", "{a}1{b}.{c}s")
]
CALLABLE = KeySource.compile(Leased(lambda a, b, c: (a, b, c)), "shop.charge", SIGNATURE)
NAMELESS = KeySource.compile(Leased(), "shop.charge", SIGNATURE)
OF_MESSAGES = KeySource.compile(Leased(MESSAGE), "shop.charge", SIGNATURE)
SOURCES = st.sampled_from([*TEMPLATES, CALLABLE])
EMPTY: tuple[object, ...] = (None, "", b"")
PARTS = VALUES.filter(lambda value: value not in EMPTY)
HEADERS = ("generation", "tick", "at_call", "parent", "message_id", "http")


def key(
    source: KeySource, *args: Any, namespace: str = "", headers: dict[str, Any] | None = None, **kwargs: Any
) -> Key:
    return source.key(args, kwargs, **{"namespace": namespace, **dict.fromkeys(HEADERS), **(headers or {})})


@given(source=SOURCES, one=st.tuples(PARTS, PARTS, PARTS), other=st.tuples(PARTS, PARTS, PARTS))
@example(source=TEMPLATES[1], one=(1, 23, 4), other=(12, 3, 4))
@example(source=TEMPLATES[0], one=("a:b", "c", "d"), other=("a", "b:c", "d"))
def test_two_calls_of_different_meaning_never_share_a_key(source: KeySource, one: Any, other: Any) -> None:
    first, second = key(source, *one[:2], c=one[2]), key(source, *other[:2], c=other[2])
    assert (first.digest == second.digest) == (meaning(one) == meaning(other))


READABLE = st.one_of(
    NAMES, st.integers(), st.booleans(), st.uuids(), st.dates(), INSTANTS, st.datetimes(), st.binary(min_size=1)
).filter(lambda value: value not in EMPTY)


@given(
    source=SOURCES,
    parts=st.tuples(PARTS, PARTS, PARTS),
    headers=st.fixed_dictionaries({}, optional=dict.fromkeys(("generation", "tick"), NAMES)),
    namespace=TEXT,
)
def test_a_readable_key_is_never_taken_for_another(source: KeySource, parts: Any, headers: Any, namespace: str) -> None:
    real = key(source, *parts[:2], c=parts[2], namespace=namespace, headers=headers)
    named = list(source.named(str(real)))
    assert [each.digest for each in named if each.digest != real.digest] == []
    assert [str(each) for each in named] == [str(real)] * len(named)


@given(source=SOURCES, parts=st.tuples(READABLE, READABLE, READABLE), namespace=st.sampled_from(["", "acme", "a b"]))
@example(source=TEMPLATES[0], parts=("a:b", "it's", "7"), namespace="")
@example(source=CALLABLE, parts=("a:b", 'say "x"', UUID(int=7)), namespace="acme")
def test_a_readable_key_of_plain_parts_is_read_back(source: KeySource, parts: Any, namespace: str) -> None:
    real = key(source, *parts[:2], c=parts[2], namespace=namespace)
    assume("..." not in str(real))
    assert [each.digest for each in source.named(str(real))] == [real.digest]


@given(
    origin=st.sampled_from(["tick", "at_call", "parent", "message_id", "http"]), value=NAMES, again=st.none() | NAMES
)
def test_a_key_that_the_call_brought_is_read_back(origin: str, value: str, again: str | None) -> None:
    headers: dict[str, Any] = {"namespace": "", **dict.fromkeys(HEADERS), origin: value, "generation": again}
    source = OF_MESSAGES if origin == "message_id" else NAMELESS
    real = source.key((1,), {}, **headers)
    assume("..." not in str(real))
    assert real.digest in [each.digest for each in source.named(str(real))]


@given(source=SOURCES, text=TEXT)
@example(source=TEMPLATES[0], text="k:'a:b:[1,2]")
@example(source=TEMPLATES[0], text="k:9999-99-99:b:1")
def test_any_text_may_be_asked_for(source: KeySource, text: str) -> None:
    assert [str(each) for each in source.named(text)] in ([], [text])


@given(source=SOURCES, calls=SPLITS)
@example(source=TEMPLATES[1], calls=(("a", "b", "cd"), ("ab", "c", "d")))
def test_text_that_is_cut_elsewhere_is_another_key(source: KeySource, calls: Any) -> None:
    """The very characters that stand between parts may stand in them."""
    first, second = (key(source, *call[:2], c=call[2]) for call in calls)
    assert first != second
    assert first.text != second.text


@given(value=PARTS)
def test_text_cannot_pass_for_a_value_of_another_type(value: Any) -> None:
    real = key(TEMPLATES[0], value)
    written = real.text.removeprefix("k:").removesuffix(":b:[1,2]")
    for lookalike in (written, written.strip("<>")):
        assume(meaning(lookalike) != meaning(value))
        forged = key(TEMPLATES[0], lookalike)
        assert forged != real
        assert forged.text != real.text


@given(number=st.decimals(allow_nan=False, allow_infinity=False), zeros=st.integers(1, 9))
def test_equal_decimals_are_one_part(number: Decimal, zeros: int) -> None:
    sign, digits, exponent = number.as_tuple()
    longer = Decimal((sign, (0, *digits, *(0,) * zeros), int(exponent) - zeros))
    assert key(TEMPLATES[0], longer) == key(TEMPLATES[0], number)
    assert key(TEMPLATES[0], longer).text == key(TEMPLATES[0], number).text


@given(instant=INSTANTS, zone=ZONES)
def test_equal_instants_are_one_part(instant: datetime, zone: tzinfo) -> None:
    assert key(TEMPLATES[0], instant.astimezone(zone)) == key(TEMPLATES[0], instant)
    assert key(TEMPLATES[0], instant.astimezone(zone)).text == key(TEMPLATES[0], instant).text


@given(source=SOURCES, call=st.tuples(PARTS, PARTS, PARTS), place=st.integers(0, 2), new=PARTS)
def test_one_changed_part_changes_the_key(source: KeySource, call: Any, place: int, new: Any) -> None:
    changed = [*call[:place], new, *call[place + 1 :]]
    assume(meaning(changed) != meaning(call))
    assert key(source, *call[:2], c=call[2]) != key(source, *changed[:2], c=changed[2])


@given(source=SOURCES, a=PARTS, b=PARTS, c=PARTS)
def test_every_way_to_write_a_call_gives_one_key(source: KeySource, a: Any, b: Any, c: Any) -> None:
    """A65."""
    ways = [
        key(source, a, b, c=c),
        key(source, a, b=b, c=c),
        key(source, c=c, b=b, a=a),
        key(source, *carried([a, b]), c=carried(c)),
        key(source, **carried({"c": c, "a": a, "b": b})),
        key(source, shuffled(a), shuffled(b), c=shuffled(c)),
    ]
    assert len({way.digest for way in ways}) == 1


@given(part=st.dictionaries(st.integers() | st.none() | st.floats() | st.sampled_from(["a", "b"]), PARTS, max_size=5))
def test_names_in_a_dict_are_those_that_a_worker_sees(part: dict[Any, Any]) -> None:
    assume(len(carried(part)) == len(part))
    assert key(TEMPLATES[0], part) == key(TEMPLATES[0], carried(part))


@given(number=st.integers(), bit=st.integers(0, 10_000))
def test_no_digit_of_a_number_is_lost(number: int, bit: int) -> None:
    assert key(TEMPLATES[0], number) != key(TEMPLATES[0], number ^ (1 << bit))


@given(source=SOURCES, a=PARTS)
def test_a_default_that_is_written_out_changes_nothing(source: KeySource, a: Any) -> None:
    assert key(source, a) == key(source, a, "b") == key(source, a, b="b", c=[1, 2]) == key(source, a, c=(1, 2))


@given(source=st.sampled_from(TEMPLATES), one=st.tuples(PARTS, PARTS, PARTS), other=st.tuples(PARTS, PARTS, PARTS))
@example(source=TEMPLATES[2], one=("a-b", "c", "d"), other=("a", "b-c", "d"))
@example(source=TEMPLATES[5], one=(1, 11, "d"), other=(11, 1, "d"))
def test_two_keys_of_one_template_never_read_alike(source: KeySource, one: Any, other: Any) -> None:
    first, second = key(source, *one[:2], c=one[2]), key(source, *other[:2], c=other[2])
    assume(first != second)
    assert first.text != second.text


@given(source=SOURCES, call=st.tuples(PARTS, PARTS, PARTS), namespace=TEXT)
def test_a_readable_key_can_be_stored_and_is_short(source: KeySource, call: Any, namespace: str) -> None:
    text = str(key(source, *call[:2], c=call[2], namespace=namespace))
    assert text.isprintable()
    assert "\0" not in text.encode().decode()
    assert len(text) < 256


@given(namespaces=st.tuples(TEXT, TEXT), again=st.tuples(NAMES, NAMES), ticks=st.tuples(NAMES, NAMES), a=PARTS)
def test_namespace_generation_and_tick_cannot_forge_each_other(
    namespaces: tuple[str, str], again: tuple[str, str], ticks: tuple[str, str], a: Any
) -> None:
    calls = list(zip(namespaces, again, ticks, strict=True))
    made = [
        key(TEMPLATES[0], a, namespace=namespace, headers={"generation": generation, "tick": tick})
        for namespace, generation, tick in calls
    ]
    assert (made[0] == made[1]) == (meaning(calls[0]) == meaning(calls[1]))
    assert (made[0].idempotency_key("s") == made[1].idempotency_key("s")) == (made[0] == made[1])


@given(calls=SPLITS)
def test_text_that_is_moved_between_headers_is_another_key(calls: Any) -> None:
    first, second = (
        key(TEMPLATES[0], 1, namespace=namespace, headers={"generation": again, "tick": tick})
        for namespace, again, tick in calls
    )
    assert first != second
    assert str(first) != str(second)


@given(value=st.floats() | st.sets(st.integers()) | st.lists(st.floats(), min_size=1) | st.builds(object))
def test_what_has_no_certain_text_is_refused(value: Any) -> None:
    """A65."""
    for source in (*TEMPLATES, CALLABLE):
        with pytest.raises(KeyInvalid):
            key(source, value)


PROGRAM = """
import json, sys, inspect
from datetime import datetime, UTC
from decimal import Decimal
from uuid import UUID
from effectonce.domain.keys import KeySource
from effectonce.domain.policies import Leased

def body(a, b=2, **c): ...

source = KeySource.compile(Leased("k:{a}:{b}:{c}"), "shop.charge", inspect.signature(body))
words = {"zeta": {"y": [1, {"q": 1, "p": 2}], "x": True}, "alpha": None, "1": 10**40}
typed = [UUID(int=1), Decimal("1.50"), datetime(2026, 1, 1, tzinfo=UTC), "\\ud800", b"x"]
nothing = dict.fromkeys(("generation", "tick", "at_call", "parent", "message_id", "http"))
key = source.key((words, typed), {"n": "v", "m": "w"}, namespace="t", **nothing)
loose = source.fingerprint((words, {"a", "b", "c", 1, 2.5, ("x", frozenset({"y", "z"}))}), {"m": "w", "n": "v"})
print(json.dumps([key.digest.hex(), str(key), str(key.idempotency_key("mail")), loose.to_bytes().hex()]))
"""


def test_every_process_comes_to_the_same_key_and_fingerprint() -> None:
    """A65: whatever the hash seed, and whatever limit is set on the digits of numbers."""
    answers = []
    for seed, digits in (("0", "640"), ("1", "0"), ("4242", "4300"), ("random", "640")):
        environment = {"PYTHONHASHSEED": seed, "PYTHONINTMAXSTRDIGITS": digits, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True, env=environment, cwd=ROOT
        )
        answers.append(tuple(json.loads(done.stdout)))
    assert len(set(answers)) == 1
