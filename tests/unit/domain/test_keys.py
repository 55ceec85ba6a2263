from typing import Any

import pytest

from effectonce.domain.policies import MESSAGE, Exclusive, Leased, Transactional
from effectonce.errors import KeyInvalid, KeyMissing, PolicyInvalid
from tests.unit.domain.calls import key_for, key_of, named, one_part, source

CHARGE = Transactional("charge:{order_id}:{amount}")


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


@pytest.mark.parametrize("made", [None, "", (), ("a", None), ("",), 1.5, object(), [{1}]], ids=named)
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
@pytest.mark.parametrize("value", ["", 3, ["x"]], ids=named)
def test_a_header_that_is_no_text_is_refused(header: str, value: Any) -> None:
    with pytest.raises(KeyInvalid):
        key_of(source(one_part, Leased()), 1, headers={"parent": "p", header: value})


@pytest.mark.parametrize("header", ["tick", "generation"])
def test_ticks_and_generations_of_an_exclusive_key_are_kept_apart_too(header: str) -> None:
    """Under keys of their own they would run beside each other."""
    made = source(charge, Exclusive("sync"))
    assert key_of(made, 1, headers={header: "one"}) == key_of(made, 2, headers={header: "two"}) == key_of(made, 3)
    told_apart = source(charge, Exclusive("sync:{tick}"))
    assert key_of(told_apart, 1, headers={"tick": "one"}) != key_of(told_apart, 1, headers={"tick": "two"})


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


def test_a_message_that_cannot_be_named_is_named_by_its_id_whatever_its_policy() -> None:
    made = source(one_part, Leased("{part}")).key_of_message("id-1")
    assert made.text == "shop.charge message=id-1"
    assert (made.namespace, made.generation, made.tick) == ("", None, None)
    assert made == key_of(source(one_part, Leased(MESSAGE)), 1, headers={"message_id": "id-1"})
    assert made != source(one_part, Leased("{part}")).key_of_message("id-2")
    with pytest.raises(KeyInvalid, match="message"):
        source(one_part, Leased("{part}")).key_of_message("")


def test_two_results_of_a_callable_are_two_effects() -> None:
    made = source(one_part, Leased(lambda part: part))
    assert len({key_of(made, part).digest for part in (1, 2, "1", ("a", "b"), ("a,b",))}) == 5


@pytest.mark.parametrize(
    ("policy", "headers", "facts"),
    [
        (Leased(lambda _: None), {}, {"task": "shop.charge", "part": "key", "reason": "it is empty"}),
        (Leased("{part}"), {"at_call": "x"}, {"task": "shop.charge", "part": "effect_key"}),
        (Leased(), {"at_call": ""}, {"task": "shop.charge", "part": "effect_key"}),
    ],
)
def test_a_refused_key_is_told_with_its_task_and_its_part(
    policy: Leased, headers: dict[str, Any], facts: dict[str, Any]
) -> None:
    with pytest.raises(KeyInvalid) as raised:
        key_of(source(one_part, policy), 1, headers=headers)
    assert facts.items() <= raised.value.facts.items()
