"""Which ledger an effect is recorded in, where an app has several."""

from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery

from effectonce import EffectOnce, Exclusive, Leased, SettingsInvalid
from tests.integration.app.test_modes import noting

NAMES = ("default", "blue", "reports")


def places(kind: str) -> dict[str, str]:
    return {name: f"memory://places-{kind}-{name}" for name in NAMES}


def chooser(kind: str) -> Callable[[str | None, str | None], Any]:
    known = places(kind)

    def choose(namespace: str | None, scope: str | None) -> Any:
        if namespace is None:
            return known.values()
        return known.get(namespace) or known.get(scope or "") or known["default"]

    return choose


def tenant(_task: Any, request: Any) -> str:
    return str((request.headers or {}).get("tenant", ""))


@pytest.mark.parametrize("kind", ["mapping", "callable"])
def test_the_namespace_says_which_and_then_the_scope(app: Celery, kind: str) -> None:
    once = EffectOnce(app, ledger=places(kind) if kind == "mapping" else chooser(kind), namespace=tenant)
    work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
    report = app.task(name="r", once=Leased("r:{x}", scope="reports"))(noting([]))
    alone = app.task(name="a", once=Exclusive("a"))(noting([]))
    for task, headers in (
        (work, {}),
        (work, {"tenant": "blue"}),
        (report, {}),
        (report, {"tenant": "blue"}),
        (alone, {}),
    ):
        task.apply((1,), headers=headers).get()
    stores = {store.name: sorted(entry.key for entry in store.entries(state=None, limit=9)) for store in once.stores}
    assert {name.rpartition("-")[2]: len(keys) for name, keys in stores.items()} == {
        "default": 2,
        "blue": 2,
        "reports": 1,
    }


def test_commands_go_over_all(app: Celery) -> None:
    once = EffectOnce(app, ledger=places("commands"), namespace=tenant)
    work = app.task(name="w", once=Leased("w:{x}"))(noting([]))
    for name in ("", "blue"):
        work.apply((1,), headers={"tenant": name}).get()
    assert [store.name.rpartition("-")[2] for store in once.stores] == list(NAMES)
    assert set(once.entries.prune()) == {store.name for store in once.stores}
    (found,) = once.entries.find("w:1")
    assert once.entries.reopen("w:1").entry.digest == found.entry.digest


@pytest.mark.parametrize(
    ("ledger", "fault"),
    [
        ({"blue": "memory://"}, "needs the name 'default'"),
        ({"default": ""}, "names no ledger for 'default'"),
        ({"default": "memory://", 3: "memory://"}, "names no ledger for 3"),
    ],
)
def test_a_mapping_that_cannot_be_meant_is_refused(app: Celery, ledger: Any, fault: str) -> None:
    once = EffectOnce(app, ledger=ledger)
    with pytest.raises(SettingsInvalid, match=fault):
        _ = once.settings
