"""The command lists what the old libraries have left, as their own code writes it."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis
from celery import Celery
from click.testing import CliRunner, Result
from redis.lock import Lock

from effectonce import EffectOnce
from effectonce.cli.effectonce import main
from effectonce.compat.celery_once import QueueOnce
from effectonce.compat.celery_singleton import Singleton

Types = Callable[..., Result]


def _nothing() -> None: ...


@pytest.fixture
def app(redis_url: str, tmp_path: Path) -> Celery:
    app = Celery("moving", broker=redis_url, set_as_current=False)
    app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": {"url": redis_url, "default_timeout": 60}}
    EffectOnce(app, ledger="memory://moving")

    @app.task(name="shop.sync_all", base=QueueOnce, once={"keys": ["supplier"]})
    def sync_all(supplier: str) -> None: ...

    @app.task(name="shop.sync", base=QueueOnce)
    def sync(all_of: str) -> None: ...

    return app


@pytest.fixture
def types(app: Celery, monkeypatch: pytest.MonkeyPatch) -> Types:
    module = ModuleType("moving")
    vars(module)["app"] = app
    monkeypatch.setitem(sys.modules, "moving", module)
    return lambda *words: CliRunner().invoke(main, ["-A", "moving", "locks", *words])


@pytest.fixture
def client(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url)


def test_locks_of_both_libraries_are_listed(types: Types, client: redis.Redis) -> None:
    assert Lock(client, "qo_shop.sync_all_supplier-acme", timeout=3600).acquire(blocking=False)
    assert client.set("SINGLETONLOCK_0cc175b9", "id-of-the-message", nx=True)
    client.set("another", "key")
    once, singleton = json.loads(types("--json").stdout)
    assert 3590 < once.pop("ends_in") <= 3600
    assert once == {
        "library": "celery-once",
        "key": "qo_shop.sync_all_supplier-acme",
        "task": "shop.sync_all",
        "task_id": "",
    }
    assert singleton == {
        "library": "celery-singleton",
        "key": "SINGLETONLOCK_0cc175b9",
        "task": "",
        "task_id": "id-of-the-message",
        "ends_in": None,
    }
    assert client.exists("qo_shop.sync_all_supplier-acme", "SINGLETONLOCK_0cc175b9", "another") == 3


def test_a_person_reads_a_line_for_each(types: Types, client: redis.Redis) -> None:
    client.set("SINGLETONLOCK_0cc175b9", "id-of-the-message")
    said = types()
    assert said.exit_code == 0
    assert said.stdout == "celery-singleton  SINGLETONLOCK_0cc175b9  no end  id-of-the-message\n"


def test_a_prefix_of_ones_own_is_taken_to_the_letter(types: Types, app: Celery, client: redis.Redis) -> None:
    app.conf.singleton_key_prefix = "lock[1]*"
    client.set("lock[1]*a", "m")
    client.set("lock1b", "n")
    assert [lock["key"] for lock in json.loads(types("--json").stdout)] == ["lock[1]*a"]


def test_a_task_that_names_its_locks_by_itself_is_told_and_found_by_a_pattern(
    types: Types, app: Celery, client: redis.Redis
) -> None:
    class Mine(QueueOnce):
        abstract = True

        def get_key(self, args: Any = None, kwargs: Any = None) -> str:
            return f"mine:{self.name}:{args}:{kwargs}"

    class Yours(Singleton):
        abstract = True

        def generate_lock(self, task_name: str, task_args: Any = None, task_kwargs: Any = None) -> str:
            return f"yours:{task_name}:{task_args}:{task_kwargs}"

    for name, base in (("shop.mine", Mine), ("shop.yours", Yours)):
        app.task(name=name, base=base)(_nothing)
    client.set("mine:shop.mine", "token", ex=60)
    without, found = types("--json"), types("--json", "--pattern", "mine:*")
    assert json.loads(without.stdout) == []
    assert "shop.mine names its locks by itself" in without.stderr
    assert "shop.yours names its locks by itself" in without.stderr
    (lock,) = json.loads(found.stdout)
    assert (lock["library"], lock["key"]) == ("pattern", "mine:shop.mine")


def test_a_backend_of_ones_own_is_told(types: Types, app: Celery) -> None:
    app.conf.ONCE = {"backend": "shop.locks.InFiles", "settings": {}}
    said = types()
    assert (said.exit_code, said.stdout) == (0, "")
    assert "shop.locks.InFiles keeps its locks elsewhere" in said.stderr


def test_a_redis_that_does_not_answer_is_an_error_without_its_password(types: Types) -> None:
    said = types("--redis", "redis://:secret@127.0.0.1:1/0")
    assert said.exit_code == 1
    assert "127.0.0.1:1" in said.output
    assert "secret" not in said.output
