"""An app whose ledger is in Django's database, on each kind."""

import itertools
from collections.abc import Iterator

import pytest
from celery import Celery
from django.db import connections

from effectonce import EffectOnce
from tests.integration.django import project
from tests.services import Fleet

_numbers = itertools.count()


@pytest.fixture(scope="module")
def postgresql(fleet: Fleet) -> Iterator[str]:
    """The alias of a PostgreSQL database."""
    url = fleet.postgresql().fresh_url()
    project.give_postgresql(url)
    yield "default"
    connections.close_all()
    fleet.postgresql().put_back(url)


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The alias of an SQLite database."""
    project.give_sqlite(tmp_path_factory.mktemp("django"))
    yield "lite"
    connections.close_all()


@pytest.fixture(scope="module")
def mariadb(fleet: Fleet) -> Iterator[str]:
    """The alias of a MariaDB database."""
    url = fleet.mariadb().fresh_url()
    project.give_mariadb(url)
    yield "maria"
    connections.close_all()
    fleet.mariadb().put_back(url)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def alias(request: pytest.FixtureRequest) -> str:
    """The alias of the ledger's database, which is empty."""
    alias: str = request.getfixturevalue(request.param)
    project.empty(alias)
    return alias


@pytest.fixture
def once(alias: str) -> Iterator[EffectOnce]:
    """An EffectOnce whose ledger is in that database."""
    app = Celery(f"django{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    once = EffectOnce(app, ledger=f"django://{alias}", lease_seconds=0.5)
    yield once
    once.ledger.close()
    app.close()
