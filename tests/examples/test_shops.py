"""The example projects: their own tests pass, and their workers may be killed beside a commit."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from celery import Celery

from effectonce.lab.processes import Worker

EXAMPLES = Path(__file__).parents[2] / "examples"
PYTHON = (sys.executable, "-W", "error")


@dataclass(frozen=True, kw_only=True)
class Example:
    """One project: how its tests are run, how its tables are made, and where its task and its rows are."""

    folder: str
    tests: Sequence[str]
    tables: Sequence[str]
    celery: str
    task: str
    order: str
    payments: str


PYTEST = (*PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
SHOPS = [
    Example(
        folder="django_shop",
        tests=(*PYTHON, "manage.py", "test"),
        tables=(*PYTHON, "manage.py", "migrate"),
        celery="shop",
        task="orders.tasks.charge",
        order="orders_order",
        payments="orders_payment",
    ),
    Example(
        folder="flask_shop",
        tests=PYTEST,
        tables=(*PYTHON, "-m", "flask", "--app", "shop", "init-db"),
        celery="make_celery",
        task="shop.tasks.charge",
        order='"order"',
        payments="payment",
    ),
    Example(
        folder="fastapi_shop",
        tests=PYTEST,
        tables=(*PYTHON, "-m", "shop.database"),
        celery="shop.celery",
        task="shop.celery.charge",
        order="orders",
        payments="payments",
    ),
]


@pytest.fixture(params=SHOPS, ids=[shop.folder for shop in SHOPS])
def shop(request: pytest.FixtureRequest) -> Iterator[Example]:
    shop: Example = request.param
    before = set((EXAMPLES / shop.folder).iterdir())
    yield shop
    left = {path.name for path in set((EXAMPLES / shop.folder).iterdir()) - before} - {"__pycache__"}
    assert left == set(), "an example leaves files behind"


def run(shop: Example, command: Sequence[str], **env: str) -> str:
    done = subprocess.run(
        command,
        cwd=EXAMPLES / shop.folder,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    return said


def test_the_projects_own_tests_pass(shop: Example) -> None:
    said = run(shop, shop.tests)
    assert "Ran 7 tests" in said or "6 passed" in said


def test_a_child_killed_beside_the_commit_charges_once(shop: Example, redis_url: str, tmp_path: Path) -> None:
    database = tmp_path / "shop.sqlite"
    env = {"SHOP_DATABASE": str(database), "SHOP_BROKER": redis_url}
    run(shop, shop.tables, **env)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"insert into {shop.order} (customer, total, is_paid) values ('ann@example.com', 30, 0)")
    crash = {"EFFECTONCE_CRASH": "commit.before", "EFFECTONCE_CRASH_ONCE": str(tmp_path / "died")}
    worker = Worker(shop.celery, folder=tmp_path, env={**env, **crash}, cwd=EXAMPLES / shop.folder)
    worker.start().wait_ready()
    sender = Celery("sender", broker=redis_url, backend=redis_url, set_as_current=False)
    try:
        results = [sender.send_task(shop.task, (1,)) for _ in range(2)]
        assert [result.get(timeout=60) for result in results] == ["charged 30"] * 2
    finally:
        worker.kill()
        sender.close()
    assert (tmp_path / "died").exists()
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(f"select amount from {shop.payments}").fetchall() == [(30,)]
