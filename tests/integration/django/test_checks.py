"""`manage.py check` says what cannot work; a first use says it too."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery, _state
from django.core.checks import Error, Warning, run_checks  # noqa: A004 - Django's own name
from django.db import connections

from effectonce import EffectOnce, SchemaMissing, SettingsInvalid, Transactional


@pytest.fixture
def guarded() -> Iterator[Callable[..., EffectOnce]]:
    """Make a guarded app that only this test knows."""
    before, made = set(_state._apps), []

    def make(**settings: Any) -> EffectOnce:
        for other in set(_state._apps) - before:
            _state._apps.discard(other)
        app = Celery("checked", broker="memory://", set_as_current=False)
        app.conf.update({f"effectonce_{name}": value for name, value in settings.items()})
        made.append(app)
        return EffectOnce(app)

    for app in before:
        _state._apps.discard(app)
    yield make
    for app in made:
        for store in app.effectonce._places._opened.values():
            store.close()
        app.close()
    for app in before:
        _state._apps.add(app)


def found(**options: Any) -> list[tuple[str, str]]:
    return [(str(each.id), str(each.msg)) for each in run_checks(**options) if isinstance(each, (Error, Warning))]


def test_bad_settings_are_errors_one_each(guarded: Callable[..., EffectOnce]) -> None:
    guarded(ledger="django", leese_seconds=3, max_takeovers=0)
    assert [name for name, _ in found()] == ["effectonce.E001"] * 2
    assert "did you mean effectonce_lease_seconds" in found()[0][1]


@pytest.mark.parametrize("ledger", ["django://nowhere", "oracle://host/database"])
def test_a_ledger_that_cannot_be_opened_is_an_error(guarded: Callable[..., EffectOnce], ledger: str) -> None:
    once = guarded(ledger=ledger)
    assert [name for name, _ in found()] == ["effectonce.E002"]
    with pytest.raises(SettingsInvalid):
        _ = once.ledger


def test_a_transactional_task_without_autocommit_is_an_error(guarded: Callable[..., EffectOnce]) -> None:
    once = guarded(ledger="django://manual")
    assert found() == []

    @once.app.task(name="work", once=Transactional("k:{x}"))
    def work(x: int) -> int:
        return x

    once.app.finalize()
    (name, text), *more = found()
    assert (name, more) == ("effectonce.E003", [])
    assert "work" in text


def test_missing_tables_are_a_warning_where_databases_are_looked_at(
    guarded: Callable[..., EffectOnce], sqlite: str
) -> None:
    guarded(ledger=f"django://{sqlite}")
    assert found(databases=[sqlite]) == []
    with connections[sqlite].cursor() as cursor:
        cursor.execute("alter table effectonce_meta rename to hidden")
    try:
        once = guarded(ledger=f"django://{sqlite}")
        assert found() == []
        assert found(databases=["default"]) == []
        ((name, text),) = found(databases=[sqlite])
        assert name == "effectonce.W004"
        assert "effectonce_meta" in text
        with pytest.raises(SchemaMissing, match=f"manage.py migrate --database={sqlite}"):
            once.ledger.read(b"nothing-of-these")
    finally:
        with connections[sqlite].cursor() as cursor:
            cursor.execute("alter table hidden rename to effectonce_meta")


def test_a_schema_of_our_own_is_refused(guarded: Callable[..., EffectOnce]) -> None:
    guarded(ledger="django", schema="ledger")
    assert "search_path" in found()[0][1]


def test_a_driver_that_was_not_tried_is_refused(
    guarded: Callable[..., EffectOnce], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Better none than a ledger that nobody has killed a worker on."""

    class MySQLdb:
        __name__ = "MySQLdb"

    monkeypatch.setattr(connections["elsewhere"], "Database", MySQLdb())
    guarded(ledger="django://elsewhere")
    ((name, text),) = found()
    assert name == "effectonce.E002"
    assert "MySQLdb" in text
