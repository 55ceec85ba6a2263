"""What a policy does to the class of its task, and what the looser ones leave out."""

from types import SimpleNamespace
from typing import Any

import pytest

from effectonce.domain.policies import SET_BY_US, Exclusive, Leased, Natural, Policy, Unique
from effectonce.errors import NotInstalled


def task_of(policy: Policy, app: Any, **options: Any) -> Any:
    """A task class as Celery would make one, and one of it."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - it is one
        return args, kwargs

    return type("Task", (), {"__call__": __call__, "name": "shop.charge", "app": app, **options, "once": policy})()


def test_a_task_is_acknowledged_late_and_comes_back_unless_it_says_otherwise() -> None:
    plain = task_of(Leased("k:{x}"), None)
    assert (plain.acks_late, plain.reject_on_worker_lost) == (True, True)
    assert getattr(plain, SET_BY_US) == ("acks_late", "reject_on_worker_lost")
    own = task_of(Leased("k:{x}"), None, acks_late=False, reject_on_worker_lost=None)
    assert (own.acks_late, own.reject_on_worker_lost) == (False, True)
    assert getattr(own, SET_BY_US) == ("reject_on_worker_lost",)


def test_a_task_whose_app_nobody_guards_refuses_to_run() -> None:
    with pytest.raises(NotInstalled, match=r"shop\.charge"):
        task_of(Leased("k:{x}"), SimpleNamespace())(1)
    guarded = task_of(Leased("k:{x}"), SimpleNamespace(effectonce=object()))
    assert guarded(1, y=2) == ((1,), {"y": 2})


def test_what_the_looser_policies_leave_out_is_left_out() -> None:
    assert Natural("k").fingerprint is None
    assert Unique("k").fingerprint is None
    assert Exclusive("k").fingerprint is None
    assert (Natural("k").key, Natural("k").scope, Natural("k", scope="s").scope) == ("k", None, "s")


def test_a_reservation_stands_for_its_time_or_until_its_lease_ends() -> None:
    done = Unique("report:{day}")
    assert (done.key, done.until, done.lease, done.seconds) == ("report:{day}", "done", 3600.0, 3600.0)
    assert Unique("k", until="started", lease=60).seconds == 60
    assert Unique("k", until=5.0, lease=60).seconds == 5.0
    assert Unique("k", scope="s", key_at_call=True).scope == "s"


def test_a_unique_inside_of_a_policy_has_no_key_of_its_own() -> None:
    assert list(Unique().nested_faults()) == []
    for own in (Unique("k"), Unique(scope="s"), Unique(key_at_call=True)):
        assert list(own.nested_faults()) == [
            "at_send: Unique takes the key and the scope of its policy there; leave its own out"
        ]
    assert next(iter(Unique(lease=-1.0).nested_faults())).startswith("at_send: lease")
    assert list(Unique(nonsense=1).nested_faults()) == [  # type: ignore[call-arg]
        "at_send: Unique has no use for nonsense= there"
    ]
