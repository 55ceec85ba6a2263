from typing import Any

import pytest

from effectonce.domain.fingerprints import Fingerprint, names_that_differ
from effectonce.domain.policies import Leased
from effectonce.errors import KeyInvalid
from tests.unit.domain.calls import print_of


def charge(order_id: Any, amount: Any = 0, *, note: Any = None) -> None: ...


def test_every_way_to_write_a_call_gives_one_fingerprint() -> None:
    prints = [
        print_of(charge, 1),
        print_of(charge, 1, 0),
        print_of(charge, amount=0, order_id=1),
        print_of(charge, 1, note=None),
    ]
    assert len({each.to_bytes() for each in prints}) == 1


def test_a_new_parameter_with_a_default_changes_nothing() -> None:
    def newer(order_id: Any, currency: Any = ("EUR",), amount: Any = 0, *, note: Any = None) -> None: ...

    assert print_of(charge, 1, 5).to_bytes() == print_of(newer, 1, amount=5).to_bytes()
    assert print_of(newer, 1, ["EUR"], 5) == print_of(charge, 1, 5)
    assert print_of(newer, 1, ["USD"], 5) != print_of(charge, 1, 5)


def test_a_default_of_another_type_is_not_the_default() -> None:
    assert print_of(charge, 1, False) != print_of(charge, 1, 0)  # noqa: FBT003 - is what is tried
    assert print_of(charge, 1, 0.0) != print_of(charge, 1, 0)


def test_a_default_that_cannot_be_encoded_is_known_by_itself() -> None:
    nothing = object()

    def lazy(order_id: Any, session: Any = nothing) -> None: ...

    assert print_of(lazy, 1) == print_of(lazy, 1, nothing) == print_of(charge, 1)
    with pytest.raises(KeyInvalid, match="fingerprint="):
        print_of(lazy, 1, object())


def test_floats_sets_and_numbers_that_are_none_have_fingerprints() -> None:
    nan = float("nan")
    assert print_of(charge, nan) == print_of(charge, float("nan"))
    assert print_of(charge, {3, 1, 2}) == print_of(charge, {1, 2, 3})
    assert print_of(charge, 0.1 + 0.2) != print_of(charge, 0.3)
    assert print_of(charge, 1.0) != print_of(charge, 1)
    assert print_of(charge, {"b": 1, "a": [2]}) == print_of(charge, {"a": (2,), "b": 1})
    assert print_of(charge, {"a"}) != print_of(charge, ["a"])


def test_an_argument_without_a_stable_form_is_named() -> None:
    with pytest.raises(KeyInvalid, match="an object has no text") as raised:
        print_of(charge, 1, note=object())
    assert raised.value.facts["part"] == "note"


def test_only_named_arguments_count_where_names_are_given() -> None:
    policy = Leased(fingerprint=("amount",))
    assert print_of(charge, 1, 5, policy=policy) == print_of(charge, object(), 5, policy=policy)
    assert print_of(charge, 1, 5, policy=policy) != print_of(charge, 1, 6, policy=policy)
    assert print_of(charge, 1, policy=Leased(fingerprint=())) == print_of(charge, 2, policy=Leased(fingerprint=()))


def test_a_fingerprint_that_was_not_taken_agrees_with_all() -> None:
    untaken = print_of(charge, object(), policy=Leased(fingerprint=None))
    assert untaken.to_bytes() == b""
    assert untaken == print_of(charge, 1)
    assert print_of(charge, 2) == untaken
    assert names_that_differ(print_of(charge, 1), b"") == ()


def test_what_a_ledger_kept_is_read_back() -> None:
    taken = print_of(charge, 1, 5, note="n")
    assert len(taken.to_bytes()) == 12 + 3 * 4
    read = Fingerprint.from_bytes(taken.to_bytes())
    assert read == taken
    assert read.to_bytes() == taken.to_bytes()
    assert read != print_of(charge, 1, 6, note="n")
    assert taken != "something else"


def test_the_arguments_that_differ_are_named() -> None:
    recorded = print_of(charge, 1, 5).to_bytes()
    assert names_that_differ(print_of(charge, 1, 6), recorded) == ("amount",)
    assert names_that_differ(print_of(charge, 2, 6, note="n"), recorded) == ("amount", "note", "order_id")
    assert names_that_differ(print_of(charge, 1, 5), recorded) == ()
    assert names_that_differ(print_of(charge, 1), recorded) == (), "an argument was left out this time"


def test_a_value_under_another_name_differs() -> None:
    assert names_that_differ(print_of(charge, 1, note=5), print_of(charge, 1, 5).to_bytes()) == ("note",)


def test_at_most_eight_arguments_have_a_digest_of_their_own() -> None:
    def many(**named: int) -> None: ...

    numbers: dict[str, Any] = {f"n{at:02}": at for at in range(20)}
    taken = print_of(many, **numbers)
    assert len(taken.to_bytes()) == 12 + 8 * 4
    assert print_of(many, **{**numbers, "n19": 0}) != taken
    assert print_of(many, **dict(reversed(numbers.items()))) == taken


def test_extra_keyword_arguments_count_as_parameters() -> None:
    def before(order_id: int, **options: Any) -> None: ...

    def after(order_id: int, express: bool = False, **options: Any) -> None: ...  # noqa: FBT002 - as users write

    assert print_of(before, 1, express=True) == print_of(after, 1, express=True)
    assert names_that_differ(print_of(before, 1, express=True), print_of(before, 1).to_bytes()) == ("express",)
    some = Leased(fingerprint=("order_id",))
    assert print_of(before, 1, x=1, policy=some) == print_of(before, 1, x=2, policy=some)


def test_an_extra_argument_cannot_pass_for_a_place() -> None:
    def variadic(*args: Any, **kwargs: Any) -> None: ...

    def placed(first: Any, /, **kwargs: Any) -> None: ...

    assert print_of(variadic, 1, args=[2]) != print_of(variadic, 2, args=[1])
    assert print_of(placed, 1, first=2) != print_of(placed, 2, first=1)
    assert print_of(variadic) == print_of(variadic, *[])


def test_the_digests_are_those_of_the_first_release() -> None:
    """A change here turns every message under way into another call; see `canonical`."""
    assert print_of(charge, 42, 7).to_bytes().hex() == "db94dcb39253fc016155afbf4064bb514228b6a2"
