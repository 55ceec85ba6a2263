"""A bank on each database, and an app whose calls stay in this process."""

import itertools
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from celery import Celery

from effectonce import EffectOnce
from tests.testing.bank import open_bank

_numbers = itertools.count()


@pytest.fixture
def bank(sqlite_url: str) -> Iterator[sa.Engine]:
    """A bank in a file."""
    engine = open_bank(sqlite_url)
    yield engine
    engine.dispose()


@pytest.fixture
def effects_database(bank: sa.Engine) -> sa.Engine:
    """What is compared here."""
    return bank


@pytest.fixture
def app() -> Iterator[Celery]:
    """One app, without a guard."""
    app = Celery(f"bank{next(_numbers)}", broker="memory://", backend="cache+memory://", set_as_current=False)
    yield app
    app.close()


@pytest.fixture
def once(app: Celery, bank: sa.Engine) -> Iterator[EffectOnce]:
    """The app's guard, with its ledger in the bank's database."""
    once = EffectOnce(app, ledger=bank.url.render_as_string(hide_password=False), create_schema=True)
    once.ledger.ping()
    yield once
    once.ledger.close()
