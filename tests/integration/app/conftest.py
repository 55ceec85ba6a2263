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
    """Make apps without the shared tasks of other tests; those of this test are forgotten after it."""
    shared, made = set(_state._on_app_finalizers), []
    _state._on_app_finalizers.intersection_update(
        {each for each in shared if each.__module__.startswith("celery.app.builtins")}
    )

    def make(**conf: Any) -> Celery:
        app = Celery(f"app{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
        # A broker in memory is one for all apps of a process.
        app.conf.update({"task_default_queue": app.main, **conf})
        made.append(app)
        return app

    yield make
    for app in made:
        app.close()
    _state._on_app_finalizers.clear()
    _state._on_app_finalizers.update(shared)


@pytest.fixture
def app(make_app: Callable[..., Celery]) -> Celery:
    """One app."""
    return make_app()


@pytest.fixture
def once(app: Celery) -> EffectOnce:
    """Its EffectOnce, with a ledger of this test."""
    return EffectOnce(app, ledger=f"memory://test{next(_numbers)}", lease_seconds=0.5)
