"""An app with a ledger in memory, whose calls stay in this process."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from celery import Celery, _state

from effectonce import EffectOnce

_numbers = itertools.count()


@pytest.fixture
def make_app() -> Iterator[Callable[..., Celery]]:
    """Make apps; shared tasks of this test are forgotten after it."""
    shared, made = set(_state._on_app_finalizers), []

    def make(**conf: Any) -> Celery:
        app = Celery(f"app{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
        app.conf.update(conf)
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()
    _state._on_app_finalizers.intersection_update(shared)


@pytest.fixture
def app(make_app: Callable[..., Celery]) -> Celery:
    """One app."""
    return make_app()


@pytest.fixture
def once(app: Celery) -> EffectOnce:
    """Its EffectOnce, with a ledger of this test."""
    return EffectOnce(app, ledger=f"memory://test{next(_numbers)}", lease_seconds=0.5)
