"""What every test may ask for: places in servers that start when they are first wanted.

``redis_url``, ``amqp_url``, ``postgresql_url``, ``pgbouncer_url``, ``mariadb_url``, ``sqlite_url`` are fresh for each
test.
``redis_server``, ``rabbitmq_server``, ``postgresql_server``, ``mariadb_server`` are the servers behind them, to be
killed, frozen and started again. A test that leaves its server dead does no harm to the next one: asking for a place
starts it.

A server that cannot be had skips the test with the reason; where ``CI`` is set, it fails the test.
"""

import contextlib
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from celery import _state

from tests.services import Fleet, Given, MariaDB, PgBouncer, PostgreSQL, RabbitMQ, Redis, Server, ServiceMissing

Own = TypeVar("Own", bound=Server)
PLACES: dict[str, type[Redis | RabbitMQ | PostgreSQL | PgBouncer | MariaDB]] = {
    "redis_url": Redis,
    "redis_server": Redis,
    "amqp_url": RabbitMQ,
    "rabbitmq_server": RabbitMQ,
    "postgresql_url": PostgreSQL,
    "postgresql_server": PostgreSQL,
    "pgbouncer_url": PgBouncer,
    "mariadb_url": MariaDB,
    "mariadb_server": MariaDB,
}


@pytest.fixture(autouse=True)
def _tasks_of_its_own() -> Iterator[None]:
    """Celery gives a task of one app to every other app of this process, those of other tests and files too.

    Tasks of ``shared_task`` are meant for every app: those of files stay, those of a test end with it.
    """
    shared = {each for each in _given_to_every_app() if each.__module__ != "celery.app.base"}
    _given_to_every_app().intersection_update(shared)
    yield
    _given_to_every_app().intersection_update(shared)


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """The servers of this test run; each process of pytest-xdist has its own."""
    fleet = Fleet()
    yield fleet
    fleet.close()


@pytest.fixture(autouse=True)
def no_worker_is_left() -> None:
    """A worker that ran in this process forbids it to wait for results; the next test is no task."""
    _state._set_task_join_will_block(False)  # noqa: FBT003 - Celery's own


@pytest.fixture
def redis_server(fleet: Fleet) -> Iterator[Redis]:
    """Redis, running, ours to kill."""
    yield (server := _ours(fleet.redis()))
    server.resume()


@pytest.fixture
def rabbitmq_server(fleet: Fleet) -> Iterator[RabbitMQ]:
    """RabbitMQ, running, ours to kill."""
    yield (server := _ours(fleet.rabbitmq()))
    server.resume()


@pytest.fixture
def postgresql_server(fleet: Fleet) -> Iterator[PostgreSQL]:
    """PostgreSQL, running, ours to kill."""
    yield (server := _ours(fleet.postgresql()))
    server.resume()


@pytest.fixture
def mariadb_server(fleet: Fleet) -> Iterator[MariaDB]:
    """MariaDB, running, ours to kill."""
    yield (server := _ours(fleet.mariadb()))
    server.resume()


@pytest.fixture
def redis_url(fleet: Fleet) -> Iterator[str]:
    """The address of an empty numbered database."""
    yield (url := fleet.redis().fresh_url())
    fleet.redis().put_back(url)


@pytest.fixture
def amqp_url(fleet: Fleet) -> Iterator[str]:
    """The address of an empty virtual host."""
    yield (url := fleet.rabbitmq().fresh_url())
    fleet.rabbitmq().put_back(url)


@pytest.fixture
def postgresql_url(fleet: Fleet) -> Iterator[str]:
    """The address of an empty database, as SQLAlchemy reads it."""
    yield (url := fleet.postgresql().fresh_url())
    fleet.postgresql().put_back(url)


@pytest.fixture
def pgbouncer_url(fleet: Fleet) -> Iterator[str]:
    """The address of an empty database of PostgreSQL, through a pooler in transaction mode."""
    yield (url := fleet.pgbouncer().fresh_url())
    fleet.pgbouncer().put_back(url)


@pytest.fixture
def mariadb_url(fleet: Fleet) -> Iterator[str]:
    """The address of an empty database, as SQLAlchemy reads it."""
    yield (url := fleet.mariadb().fresh_url())
    fleet.mariadb().put_back(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'effects.sqlite'}"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Install what is missing now, where no test's time limit runs; a test that cannot have it will say so."""
    if session.config.option.collectonly:
        return
    names = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    for kind in {PLACES[name] for name in names & PLACES.keys()}:
        if not os.environ.get(kind.variable):
            with contextlib.suppress(ServiceMissing):
                kind.find()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Turn a missing server into a skip."""
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Turn a missing server into a skip."""
    return (yield from _skipping())


def _given_to_every_app() -> set[Any]:
    return _state._on_app_finalizers  # type: ignore[no-any-return]


def _ours(server: Own | Given) -> Own:
    if isinstance(server, Given):
        message = f"this test ends its server, and {server.variable} names one that is not ours to end"
        raise ServiceMissing(message)
    return server


def _skipping() -> Generator[None, object, object]:
    try:
        return (yield)
    except ServiceMissing as fault:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(fault))
