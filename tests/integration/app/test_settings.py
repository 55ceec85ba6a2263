"""Settings are read late, from anywhere Celery has them, and all faults come in one report."""

from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery

from effectonce import EffectOnce, Leased, PolicyInvalid, SettingsInvalid, Transactional


def same(x: int) -> int:
    return x


def test_all_bad_settings_are_reported_at_once_with_the_nearest_name(make_app: Callable[..., Celery]) -> None:
    app = make_app(effectonce_leese_seconds=3, effectonce_mode="enforced", effectonce_max_takeovers=0)
    once = EffectOnce(app, ledger="memory://")
    with pytest.raises(SettingsInvalid) as caught:
        _ = once.settings
    text = str(caught.value)
    assert "effectonce_leese_seconds is no setting; did you mean effectonce_lease_seconds?" in text
    assert "effectonce_mode must be 'enforce'" in text
    assert "effectonce_max_takeovers must be a whole number of at least 1, not 0" in text


def test_a_bad_argument_is_an_error_where_it_is_written(app: Celery) -> None:
    with pytest.raises(SettingsInvalid, match="did you mean effectonce_lease_seconds"):
        EffectOnce(app, ledger="memory://", lease_secs=3)


def test_a_missing_ledger_says_what_to_write(app: Celery) -> None:
    with pytest.raises(SettingsInvalid, match="EffectOnce\\(app, ledger='postgresql"):
        _ = EffectOnce(app).settings


def test_settings_may_stand_in_the_configuration(make_app: Callable[..., Celery]) -> None:
    once = EffectOnce(make_app(effectonce_ledger="memory://conf", effectonce_lease_seconds=7))
    assert (once.settings.ledger, once.settings.lease_seconds) == ("memory://conf", 7)


def test_settings_may_stand_under_a_namespace(make_app: Callable[..., Celery]) -> None:
    class Django:
        CELERY_EFFECTONCE_LEDGER = "memory://namespaced"
        CELERY_EFFECTONCE_LEASE_SECONDS = 9

    app = make_app()
    app.config_from_object(Django, namespace="CELERY")
    assert EffectOnce(app).settings.lease_seconds == 9


def test_what_is_given_to_the_constructor_goes_first(make_app: Callable[..., Celery]) -> None:
    app = make_app(effectonce_lease_seconds=7)
    assert EffectOnce(app, ledger="memory://", lease_seconds=8).settings.lease_seconds == 8


def test_the_constructor_reads_no_configuration() -> None:
    app = Celery("unread", set_as_current=False)
    app.config_from_object("a.module.that.does.not.exist")
    EffectOnce(app, ledger="memory://")
    assert not app.configured


def test_a_url_that_cannot_be_opened_keeps_its_password(app: Celery) -> None:
    once = EffectOnce(app, ledger="nosuch+driver://user:hush@host/db")
    with pytest.raises(SettingsInvalid) as caught:
        _ = once.ledger
    assert "hush" not in str(caught.value)


def test_a_bad_policy_fails_where_the_task_is_defined(app: Celery) -> None:
    EffectOnce(app, ledger="memory://")
    bad: dict[str, Any] = {"on_bussy": "defer"}
    with pytest.raises(PolicyInvalid) as caught:

        @app.task(name="billing.charge", once=Transactional("charge:{order}", keep=-1, **bad))
        def charge(order_id: int) -> None: ...

    text = str(caught.value)
    for words in ("billing.charge", "on_bussy", "did you mean 'on_busy'", "'order'", "order_id", "keep"):
        assert words in text


def test_a_flask_app_that_carries_a_celery_app_is_taken(app: Celery) -> None:
    class Flask:
        extensions = {"celery": app}  # noqa: RUF012

    once = EffectOnce(ledger="memory://flask")
    once.init_app(Flask())
    work = app.task(name="w", once=Leased("k:{x}"))(same)
    assert work(1) == 1
    with pytest.raises(SettingsInvalid, match="needs a Celery app"):
        EffectOnce(ledger="memory://").init_app(object())


def test_an_app_that_is_made_anew_has_the_ledger_of_its_own_settings(make_app: Callable[..., Celery]) -> None:
    """Factories call `init_app` of one module's EffectOnce for each app that they make."""
    once = EffectOnce()
    for name in ("first", "second"):
        once.init_app(make_app(effectonce_ledger=f"memory://{name}"))
        assert once.ledger.name == f"memory://{name}"
