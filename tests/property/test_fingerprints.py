"""Calls with the same arguments have one fingerprint, however they are written; others have another."""

import inspect
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from effectonce.domain.fingerprints import Fingerprint, names_that_differ
from effectonce.domain.keys import KeySource
from effectonce.domain.policies import Leased
from tests.property.values import LOOSE, NAMES, carried, meaning, shuffled


def body(a: Any, b: Any = "b", *, c: Any = (1, 2)) -> None: ...


def newer(a: Any, x: Any = None, b: Any = "b", *, c: Any = [1, 2], d: Any = 1.5) -> None: ...  # noqa: B006 - as users write


def variadic(a: Any, *args: Any, **kwargs: Any) -> None: ...


SOURCE, NEWER, VARIADIC = (
    KeySource.compile(Leased(), "shop.charge", inspect.signature(each)) for each in (body, newer, variadic)
)
CALLS = st.tuples(LOOSE, LOOSE, LOOSE)


def taken(source: KeySource, *args: Any, **kwargs: Any) -> Fingerprint:
    return source.fingerprint(args, kwargs)


@given(one=CALLS, other=CALLS)
def test_two_calls_with_other_arguments_never_share_a_fingerprint(one: Any, other: Any) -> None:
    first, second = taken(SOURCE, *one[:2], c=one[2]), taken(SOURCE, *other[:2], c=other[2])
    assert (first == second) == (meaning(one) == meaning(other))
    assert (first.to_bytes() == second.to_bytes()) == (first == second)


@given(call=CALLS)
def test_every_way_to_write_a_call_gives_one_fingerprint(call: Any) -> None:
    a, b, c = call
    ways = [
        taken(SOURCE, a, b, c=c),
        taken(SOURCE, c=c, b=b, a=a),
        taken(SOURCE, *carried([a, b]), c=carried(c)),
        taken(SOURCE, shuffled(a), b=shuffled(b), c=shuffled(c)),
        taken(NEWER, a, b=b, c=c),
        taken(NEWER, a, None, b, c=c, d=1.5),
    ]
    assert len({way.to_bytes() for way in ways}) == 1


@given(a=LOOSE)
def test_a_default_that_is_written_out_changes_nothing(a: Any) -> None:
    assert taken(SOURCE, a).to_bytes() == taken(SOURCE, a, "b", c=[1, 2]).to_bytes()


@given(one=CALLS, other=CALLS)
def test_the_arguments_that_differ_are_named_and_no_others(one: Any, other: Any) -> None:
    recorded = taken(SOURCE, *one[:2], c=one[2]).to_bytes()
    received = taken(SOURCE, *other[:2], c=other[2])
    differ = {name for name, old, new in zip("abc", one, other, strict=True) if meaning(old) != meaning(new)}
    assert set(names_that_differ(received, recorded)) == differ - _at_default(other)
    assert Fingerprint.from_bytes(recorded).to_bytes() == recorded


def _at_default(call: Any) -> set[str]:
    return {
        name
        for name, value, default in (("b", call[1], "b"), ("c", call[2], [1, 2]))
        if meaning(value) == meaning(default)
    }


@given(
    one=st.tuples(
        st.lists(LOOSE, max_size=2), st.dictionaries(NAMES | st.sampled_from(["args", "kwargs"]), LOOSE, max_size=3)
    ),
    other=st.tuples(
        st.lists(LOOSE, max_size=2), st.dictionaries(NAMES | st.sampled_from(["args", "kwargs"]), LOOSE, max_size=3)
    ),
)
def test_extra_arguments_cannot_pass_for_others(one: Any, other: Any) -> None:
    assume("a" not in one[1] and "a" not in other[1])
    first, second = taken(VARIADIC, 0, *one[0], **one[1]), taken(VARIADIC, 0, *other[0], **other[1])
    assert (first == second) == (meaning(one) == meaning(other))
    assert first == taken(VARIADIC, 0, *one[0], **dict(reversed(one[1].items())))
