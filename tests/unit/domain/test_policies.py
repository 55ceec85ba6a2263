import copy
import dataclasses
import inspect
import pickle
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from effectonce.domain.policies import MESSAGE, UNSET, Exclusive, Leased, Natural, Policy, Transactional, Unique
from effectonce.errors import PolicyInvalid
from tests.unit.domain.calls import named


def charge(order_id: int, amount: int = 0) -> None: ...


def nothing() -> None: ...


def faults(policy: Policy, body: Callable[..., Any] = charge) -> list[str]:
    try:
        policy.check("shop.charge", inspect.signature(body))
    except PolicyInvalid as error:
        return list(error.facts["faults"])
    return []


def test_the_error_names_the_task_and_every_fault() -> None:
    policy = Leased("charge:{order}", lease=0)
    with pytest.raises(PolicyInvalid) as raised:
        policy.check("shop.charge", inspect.signature(charge))
    assert raised.value.facts["task"] == "shop.charge"
    assert str(raised.value).startswith("policy-invalid: task 'shop.charge'")
    assert [fault for fault in faults(policy) if fault not in str(raised.value)] == []


@pytest.mark.parametrize(
    "policy",
    [
        Transactional("charge:{order_id}"),
        Transactional("{order_id}", allow_escape=True, result=False, keep=None),
        Leased("charge:{order_id.id}:{amount[0]}", lease=30, on_unknown="retry"),
        Leased("a:{order_id.lines[0].sku[a b]}", lease=timedelta(seconds=30)),
        Leased("{{literal}} {order_id}", on_busy="skip", on_duplicate="raise", mode="enforce"),
        Leased("report:{tick}"),
        Leased(lambda order_id: order_id, remember=(ValueError, LookupError)),
        Leased(lambda a, b: (a, b)),
        Leased(lambda *everything: everything),
        Leased(MESSAGE, max_takeovers=1),
        Leased(fingerprint=("amount",), keep=timedelta(days=1), scope="billing"),
        Leased(fingerprint=None, key_at_call=True),
        Leased(fingerprint=()),
        Leased("a:{order_id}", on_unknown="hold", reconcile=max),
        Leased("a:{order_id}", on_unknown="skip", reconcile=None),
        Leased(max_takeovers=UNSET, keep=UNSET, lease=UNSET, mode=UNSET),
        Exclusive("sync"),
        Exclusive("sync:{order_id}", lease=timedelta(minutes=5), on_busy="defer", fingerprint=("amount",)),
        Exclusive(lambda: "sync"),
        Exclusive("sync", on_busy="follow"),
        Transactional("charge:{order_id}", on_busy="wait"),
        Exclusive(key_at_call=True),
        Natural(),
        Natural("set:{order_id}", scope="shop"),
        Natural("set"),
        Unique("report:{order_id}"),
        Unique("report", until="started", lease=timedelta(minutes=5)),
        Unique("report", until=timedelta(minutes=5)),
        Unique(until=5, key_at_call=True),
        Transactional("charge:{order_id}", at_send=Unique(until="done")),
        Exclusive("sync", at_send=Unique(until=timedelta(minutes=1))),
    ],
    ids=named,
)
def test_a_good_policy_passes(policy: Policy) -> None:
    assert faults(policy) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"on_duplicat": "raise"}, ["on_duplicat", "did you mean 'on_duplicate'?"]),
        ({"leese": 3}, ["leese", "did you mean 'lease'?"]),
        ({"allow_escape": True}, ["allow_escape", "Transactional has"]),
        ({"at_send": 1}, ["at_send=1", "Unique(until=...)"]),
        ({"at_send": Unique}, ["at_send=", "Unique(until=...)"]),
        ({"at_send": Unique("w:{x}")}, ["takes the key"]),
        ({"at_send": Unique(until="never")}, ["at_send: until='never'", "'done', 'started'"]),  # type: ignore[arg-type]
        ({"at_send": Unique(lease=0)}, ["at_send: lease=0"]),
        ({"reconcile": "ask"}, ["reconcile='ask'", "a callable"]),
        ({"reconcile": int}, ["reconcile=", "a callable"]),
        ({"on_duplicate": "replya"}, ["on_duplicate='replya'", "did you mean 'replay'?"]),
        ({"on_busy": "follow"}, ["on_busy='follow'", "is for Exclusive"]),
        ({"on_busy": 3}, ["on_busy=3", "'defer'"]),
        ({"on_unknown": "held"}, ["on_unknown='held'", "did you mean 'hold'?"]),
        ({"mode": "observed"}, ["mode='observed'", "did you mean 'observe'?"]),
        ({"mode": None}, ["mode=None", "'enforce'"]),
        ({"result": 1}, ["result=1", "True, False, None"]),
        ({"key_at_call": "yes"}, ["key_at_call='yes'", "True, False"]),
        ({"scope": ""}, ["scope=''", "not empty"]),
        ({"scope": 3}, ["scope=3"]),
        ({"keep": 0}, ["keep=0", "seconds above 0"]),
        ({"keep": True}, ["keep=True", "seconds above 0"]),
        ({"keep": float("nan")}, ["keep=nan"]),
        ({"keep": timedelta()}, ["keep="]),
        ({"lease": -1}, ["lease=-1", "seconds above 0"]),
        ({"lease": float("inf")}, ["lease=inf"]),
        ({"lease": None}, ["lease=None"]),
        ({"max_takeovers": 0}, ["max_takeovers=0", "at least 1"]),
        ({"max_takeovers": 1.5}, ["max_takeovers=1.5"]),
        ({"max_takeovers": True}, ["max_takeovers=True"]),
        ({"remember": (ValueError(),)}, ["remember=", "exception classes"]),
        ({"remember": ValueError}, ["remember=", "tuple"]),
        ({"remember": (KeyboardInterrupt,)}, ["remember="]),
        ({"fingerprint": "amount"}, ["fingerprint='amount'", "('amount',)"]),
        ({"fingerprint": ("amont",)}, ["'amont'", "did you mean 'amount'?"]),
        ({"fingerprint": (1,)}, ["fingerprint=(1,)"]),
    ],
    ids=named,
)
def test_a_bad_option_is_named_with_what_would_be_right(options: dict[str, Any], words: list[str]) -> None:
    found = faults(Leased("charge:{order_id}", **options))
    assert len(found) == 1
    assert [word for word in words if word not in found[0]] == []


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Exclusive("sync", on_duplicate="raise"), ["on_duplicate=", "lets the next message run"]),
        (Exclusive("sync", on_bussy="skip"), ["did you mean 'on_busy'?"]),  # type: ignore[call-arg]
        (Exclusive("sync", lease=0), ["lease=0"]),
        (Exclusive("sync", on_unknown="retry"), ["on_unknown", "Leased has"]),  # type: ignore[call-arg]
        (Exclusive(), ["Exclusive", "needs one", "Exclusive('sync')"]),
        (Exclusive(""), ["empty"]),
        (Exclusive(MESSAGE), ["keeps nothing apart"]),
        (Exclusive("sync:{ordr_id}"), ["did you mean 'order_id'?"]),
        (Natural("set:{order_id}", on_busy="skip"), ["on_busy=", "keeps no entry"]),
        (Natural(keep=3), ["keep=", "keeps no entry"]),
        (Natural(fingerprint=()), ["fingerprint=", "keeps no entry"]),
        (Unique(), ["Unique alone needs a key", "Unique('report')"]),
        (Unique(MESSAGE), ["Unique alone needs a key"]),
        (Unique("report", until="ended"), ["until='ended'"]),  # type: ignore[arg-type]
        (Unique("report", until=0), ["until=0"]),
        (Unique("report", on_busy="skip"), ["on_busy=", "keeps no entry"]),
        (Unique("report", at_send=Unique()), ["at_send="]),
        (Natural(lease=3), ["lease", "Leased or Exclusive has"]),  # type: ignore[call-arg]
    ],
    ids=named,
)
def test_what_a_policy_has_no_use_for_is_refused_and_not_ignored(policy: Policy, words: list[str]) -> None:
    found = faults(policy)
    assert len(found) == 1
    assert [word for word in words if word not in found[0]] == []


def test_exclusive_skips_and_does_not_compare_unless_told_to() -> None:
    policy = Exclusive("sync", lease=timedelta(minutes=1))
    assert (policy.on_busy, policy.fingerprint, policy.lease) == ("skip", None, 60.0)
    assert Exclusive("sync", on_busy="defer", fingerprint="all").on_busy == "defer"


def test_a_huge_number_of_seconds_is_no_crash() -> None:
    assert faults(Leased("charge:{order_id}", keep=10**400)) == []


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("charge:{ordr_id}", ["'ordr_id'", "did you mean 'order_id'?"]),
        ("charge:{x}", ["'x'", "there are: order_id, amount"]),
        ("charge", ["names no parameter", "Exclusive", "leave the key out", "name:{order_id}"]),
        ("", ["names no parameter"]),
        ("charge:{{order_id}}", ["names no parameter"]),
        ("charge:{}", ["{} names no parameter", "name:{order_id}"]),
        ("charge:{0}", ["{0} names no parameter"]),
        ("charge:{order_id!r}", ["no conversion"]),
        ("charge:{order_id:>5}", ["no format"]),
        ("charge:{order_id:{amount}}", ["no format"]),
        ("charge:{order_id()}", ["{order_id()} is no path"]),
        ("charge:{order_id.total()}", ["is no path"]),
        ("charge:{order_id + 1}", ["is no path"]),
        ("charge:{order_id.}", ["is no path"]),
        ("charge:{order_id[]}", ["is no path"]),
        ("charge:{order_id.__class__}", ["underscore"]),
        ("charge:{order_id[0]._secret}", ["underscore"]),
        ("charge:{order_id", ["no template", "braces"]),
        ("charge:order_id}", ["no template", "braces"]),
        ("charge:{self.request.id}", ["'self' is no parameter", "MESSAGE"]),
        ("charge:\n{order_id}", ["cannot be printed"]),
        (42, ["key=42", "a template, a callable, MESSAGE or None"]),
        (str, ["a template, a callable, MESSAGE or None"]),
        (lambda: "x", ["takes no argument", "one effect for ever"]),
        (lambda a: a, ["cannot be called", "(a)", "(order_id: int, amount: int = 0)"]),
        (lambda order_id, customer: (order_id, customer, 0), []),
        (lambda order_id, customer, amount: (order_id, customer, amount), ["cannot be called"]),
    ],
    ids=named,
)
def test_a_bad_key_is_named_with_what_would_be_right(key: Any, words: list[str]) -> None:
    found = faults(Transactional(key))
    assert len(found) == bool(words)
    assert [word for word in words if word not in found[0]] == []


async def _waits(order_id: int) -> int:
    return order_id


def test_a_key_is_made_without_waiting() -> None:
    assert "coroutine" in faults(Leased(_waits))[0]


def test_a_task_without_parameters_is_told_of_the_tick() -> None:
    assert "name:{tick}" in faults(Leased("daily"), nothing)[0]


def test_all_faults_come_in_one_error() -> None:
    policy = Leased("charge:{ordr}:{amont}", lease=0, on_bussy="skip", fingerprint=("x",))  # type: ignore[call-arg]
    assert len(faults(policy)) == 5


def test_the_bare_base_is_no_policy() -> None:
    assert faults(Policy("charge:{order_id}")) == [
        "Policy is what all policies share; use Transactional, Leased, Exclusive, Natural or Unique",
    ]


def test_nothing_is_raised_before_the_task_is_known() -> None:
    Transactional(42, nonsense=1, keep=object())  # type: ignore[arg-type, call-arg]


def test_a_policy_is_frozen_and_has_no_room_for_more() -> None:
    policy = Leased("charge:{order_id}", remember=[ValueError])
    assert policy.remember == (ValueError,)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.key = "other:{order_id}"  # type: ignore[misc]
    assert not hasattr(policy, "__dict__")


def test_a_policy_can_be_copied_and_pickled() -> None:
    policy = Leased("charge:{order_id}", lease=30, keep=None)
    assert copy.deepcopy(policy) == pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - our own bytes
    assert pickle.loads(pickle.dumps(UNSET)) is UNSET  # noqa: S301
    assert copy.deepcopy(MESSAGE) is MESSAGE


def test_spans_are_seconds() -> None:
    policy = Leased("charge:{order_id}", lease=timedelta(minutes=1), keep=timedelta(hours=1))
    assert (policy.lease, policy.keep_seconds) == (60.0, 3600.0)
    assert (Leased().lease, Leased().keep_seconds, Leased(keep=None).keep_seconds) == (UNSET, UNSET, None)
    assert repr((UNSET, MESSAGE)) == "(UNSET, MESSAGE)"


async def _awaits(order_id: int) -> int:
    return order_id


def _yields(order_id: int) -> Iterator[int]:
    yield order_id


async def _awaits_and_yields(order_id: int) -> AsyncIterator[int]:
    yield order_id


@pytest.mark.parametrize("body", [_awaits, _yields, _awaits_and_yields])
def test_a_body_that_a_call_does_not_run_is_refused(body: Callable[..., Any]) -> None:
    """It would count as done before it began."""
    with pytest.raises(PolicyInvalid, match="Celery does not run"):
        Leased("charge:{order_id}").check("shop.charge", inspect.signature(body), body=body)
