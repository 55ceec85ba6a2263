"""`Exclusive` and `Natural` in one process: who runs, who is refused, and where it is written."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import Ignore

from effectonce import (
    EffectBusy,
    EffectOnce,
    Exclusive,
    KeyInvalid,
    Leased,
    Natural,
    NotInstalled,
    SettingsInvalid,
    Transactional,
)
from effectonce.domain.claims import State

TASK_ID = "11111111-1111-4111-8111-111111111111"


def noting(seen: list[int]) -> Callable[[int], int]:
    def note(x: int) -> int:
        seen.append(x)
        return x

    return note


class Gate:
    """A body that waits inside until it may go."""

    def __init__(self) -> None:
        self.inside, self.may_go = threading.Event(), threading.Event()
        self.most = self.now = 0

    def body(self, x: int) -> int:
        self.now += 1
        self.most = max(self.most, self.now)
        self.inside.set()
        assert self.may_go.wait(30)
        self.now -= 1
        return x


def gate_body(gate: Gate) -> Callable[[int], int]:
    def body(x: int) -> int:
        return gate.body(x)

    return body


def test_a_finished_run_does_not_stand_in_the_way_of_the_next(app: Celery, once: EffectOnce) -> None:
    seen: list[int] = []
    work = app.task(name="w", once=Exclusive("w"))(noting(seen))
    assert [work.apply((x,)).get() for x in (1, 2, 1)] == [1, 2, 1]
    assert [work(x) for x in (1, 2)] == [1, 2]
    assert seen == [1, 2, 1, 1, 2]
    assert [entry.state for entry in once.ledger.find("w")] == [State.COMPLETED]


def test_a_copy_of_the_message_that_was_carried_out_last_is_a_duplicate(app: Celery, once: EffectOnce) -> None:
    seen: list[int] = []
    work = app.task(name="w", once=Exclusive("w"))(noting(seen))
    assert [work.apply((x,), task_id=TASK_ID).get() for x in (1, 1)] == [1, 1]
    assert seen == [1]


def test_two_direct_calls_take_turns(app: Celery, once: EffectOnce) -> None:
    """A call that cannot be put off waits up to a lease (rule 19)."""
    gate = Gate()
    work = app.task(name="w", once=Exclusive("w", lease=30))(gate_body(gate))
    calls = [threading.Thread(target=work, args=(x,)) for x in (1, 2)]
    for call in calls:
        call.start()
    assert gate.inside.wait(30)
    gate.may_go.set()
    for call in calls:
        call.join(30)
    assert (gate.most, gate.now) == (1, 0)


def test_a_direct_call_that_waited_a_lease_in_vain_is_told_so(app: Celery, once: EffectOnce) -> None:
    gate = Gate()
    work = app.task(name="w", once=Exclusive("w", lease=0.3))(gate_body(gate))
    holder = threading.Thread(target=work, args=(1,))
    holder.start()
    assert gate.inside.wait(30)
    with pytest.raises(EffectBusy):
        work(2)
    gate.may_go.set()
    holder.join(30)
    assert gate.most == 1


def test_a_body_that_calls_for_its_own_key_is_told_so(app: Celery, once: EffectOnce) -> None:
    def again(x: int) -> int:
        return int(work(x - 1)) if x else 0

    work = app.task(name="w", once=Exclusive("w"))(again)
    with pytest.raises(EffectBusy):
        work(1)


def test_a_generation_of_what_runs_every_time_is_refused_at_the_call(app: Celery, once: EffectOnce) -> None:
    work = app.task(name="w", once=Exclusive("w"))(noting([]))
    with pytest.raises(KeyInvalid, match="every time"):
        work.apply_async((1,), effect_again="more")


def test_leases_may_live_elsewhere(make_app: Callable[..., Celery]) -> None:
    app = make_app(effectonce_leases="memory://leases-elsewhere")
    once = EffectOnce(app, ledger="memory://ledger-here")
    alone = app.task(name="alone", once=Exclusive("alone:{x}"))(noting([]))
    mail = app.task(name="mail", once=Leased("mail:{x}"))(noting([]))
    alone(1), mail(1)
    assert [entry.key for entry in once.ledger.entries(state=None, limit=9)] == ["mail:1"]
    assert [entry.key for entry in once.leases.entries(state=None, limit=9)] == ["alone:1"]
    assert [store.name for store in once.stores] == ["memory://ledger-here", "memory://leases-elsewhere"]


def test_a_natural_body_runs_each_time_and_needs_no_ledger(app: Celery) -> None:
    once = EffectOnce(app)
    seen: list[int] = []
    work = app.task(name="w", once=Natural("w:{x}"))(noting(seen))
    nameless = app.task(name="n", once=Natural())(noting(seen))
    assert [work(1), work.apply((1,)).get(), nameless(2), nameless.apply((2,)).get()] == [1, 1, 2, 2]
    assert seen == [1, 1, 2, 2]
    assert once.stores == ()


def test_a_natural_body_shows_the_same_idempotency_key_each_time(app: Celery) -> None:
    once = EffectOnce(app)
    keys: list[Any] = []

    def body(x: int) -> None:
        keys.append(once.effect.idempotency_key("set"))

    work = app.task(name="w", once=Natural("w:{x}"))(body)
    work(1), work(1), work(2)
    assert keys[0] == keys[1] != keys[2]


def test_a_natural_body_may_end_in_any_way(app: Celery) -> None:
    """Nothing was claimed, so nothing has to be let go."""
    EffectOnce(app)

    def end(x: int) -> None:
        raise (ValueError, Ignore)[x]

    work = app.task(name="w", once=Natural("w:{x}"))(end)
    assert isinstance(work.apply((0,)).result, ValueError)
    assert work.apply((1,)).state == "IGNORED"


def test_a_ledger_is_asked_for_where_a_task_needs_one(app: Celery) -> None:
    once = EffectOnce(app)
    app.task(name="n", once=Natural())(noting([]))
    app.finalize()
    assert once.settings.ledger is None
    work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
    with pytest.raises(SettingsInvalid, match="effectonce_ledger is missing"):
        work(1)


@pytest.mark.parametrize("policy", [Natural(), Exclusive("w"), Leased("w:{x}"), Transactional("w:{x}")])
def test_without_an_effectonce_no_policy_runs(app: Celery, policy: Any) -> None:
    seen: list[int] = []
    work = app.task(name="w", once=policy)(noting(seen))
    with pytest.raises(NotInstalled):
        work(1)
    assert seen == []


@pytest.mark.parametrize("policy", [Natural(), Exclusive("w"), Leased("w:{x}"), Transactional("w:{x}")])
def test_all_are_acknowledged_late_unless_they_say_otherwise(app: Celery, once: EffectOnce, policy: Any) -> None:
    late = app.task(name="late", once=policy)(noting([]))
    early = app.task(name="early", once=policy, acks_late=False, reject_on_worker_lost=False)(noting([]))
    assert (late.acks_late, late.reject_on_worker_lost) == (True, True)
    assert (early.acks_late, early.reject_on_worker_lost) == (False, False)


def test_a_tenant_in_a_header_keeps_keys_apart(make_app: Callable[..., Celery]) -> None:
    """`effectonce_namespace` as a callable of task and request."""
    app = make_app()
    once = EffectOnce(
        app,
        ledger="memory://tenants-in-headers",
        namespace=lambda _task, request: (request.headers or {}).get("tenant", ""),
    )
    seen: list[int] = []
    work = app.task(name="w", once=Leased("w:{x}"))(noting(seen))
    for tenant in ("north", "south", "north", "south"):
        work.apply((1,), headers={"tenant": tenant}).get()
    assert seen == [1, 1]
    keys = sorted(entry.key for entry in once.ledger.entries(state=None, limit=9))
    assert [key.partition(" ")[2] for key in keys] == ["namespace=north", "namespace=south"]


def test_a_host_overrides_the_policy_of_a_package_by_annotation(make_app: Callable[..., Celery]) -> None:
    app = make_app(task_annotations={"package.work": {"once": Exclusive("package")}})
    once = EffectOnce(app, ledger="memory://host-of-a-package")
    seen: list[int] = []
    work = app.task(name="package.work", once=Leased("w:{x}"))(noting(seen))
    assert [work.apply((1,)).get() for _ in range(2)] == [1, 1]
    assert seen == [1, 1]
    assert [entry.key for entry in once.ledger.entries(state=None, limit=9)] == ["package"]


def test_a_package_sees_its_attempt_through_the_proxies(app: Celery, once: EffectOnce) -> None:
    """It imports them without knowing the app that will run it."""
    from effectonce import effect  # noqa: PLC0415 - as a package does

    keys: list[str] = []

    def body(x: int) -> None:
        keys.append(effect.key)

    app.task(name="w", once=Exclusive("w:{x}"))(body)(3)
    assert keys == ["w:3"]
