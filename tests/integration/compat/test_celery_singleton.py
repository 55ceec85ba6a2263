"""What celery-singleton documents, with the import changed; and what it gets wrong."""

import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from celery import Celery

from effectonce.compat.celery_singleton import DuplicateTaskError, Singleton


@pytest.fixture
def single(app: Celery) -> Any:
    @app.task(base=Singleton, name="single")
    def single(a: int, b: int = 2) -> int:
        return a + b

    return single


def test_a_duplicate_gets_the_result_of_the_one_that_is_queued(single: Any) -> None:
    first = single.delay(1)
    assert single.delay(1).id == first.id
    assert single.delay(a=1, b=2).id == first.id
    assert single.delay(2).id != first.id


def test_one_that_has_ended_may_be_sent_again(single: Any, carry_out: Callable[..., str]) -> None:
    first = single.delay(1)
    assert carry_out(single, 1, task_id=first.id) == "SUCCESS"
    assert single.delay(1).id != first.id


def test_so_may_one_that_failed(app: Celery, carry_out: Callable[..., str]) -> None:
    @app.task(base=Singleton, name="fails")
    def fails(a: int) -> None:
        raise ValueError(a)

    first = fails.delay(1)
    assert carry_out(fails, 1, task_id=first.id) == "FAILURE"
    assert fails.delay(1).id != first.id


@pytest.mark.parametrize("unique_on", ["a", ["a"]])
def test_unique_on_chooses_the_arguments_that_count(app: Celery, unique_on: Any) -> None:
    @app.task(base=Singleton, name="chosen", unique_on=unique_on)
    def chosen(a: int, b: int) -> None: ...

    assert chosen.delay(1, 2).id == chosen.delay(1, 3).id != chosen.delay(2, 2).id


@pytest.mark.parametrize("where", ["task", "setting"])
def test_a_duplicate_may_be_an_error(app: Celery, where: str) -> None:
    app.conf["singleton_raise_on_duplicate"] = where == "setting"
    said = {"raise_on_duplicate": True} if where == "task" else {}

    @app.task(base=Singleton, name="loud", **said)
    def loud(a: int) -> None: ...

    first = loud.delay(1)
    with pytest.raises(DuplicateTaskError, match=f"duplicate of task ID {first.id}") as raised:
        loud.delay(1)
    assert raised.value.task_id == first.id


def test_a_retry_is_no_duplicate_of_itself(app: Celery, carry_out: Callable[..., str]) -> None:
    """celery-singleton dropped it, and its lock stayed for ever."""

    @app.task(base=Singleton, name="retries", bind=True)
    def retries(self: Any, a: int) -> None:
        raise self.retry(countdown=0)

    first = retries.delay(1)
    assert carry_out(retries, 1, task_id=first.id) == "RETRY"
    with app.connection_for_read() as connection:
        assert connection.default_channel._size(app.main) == 2


def test_a_lock_ends_after_its_time(app: Celery) -> None:
    @app.task(base=Singleton, name="short", lock_expiry=0.01)
    def short(a: int) -> None: ...

    first = short.delay(1)
    assert any(short.delay(1).id != first.id for _ in range(1000))


def test_a_lock_is_given_back_by_its_own_message_alone(single: Any, carry_out: Callable[..., str]) -> None:
    first = single.delay(1)
    carry_out(single, 1, task_id="a stranger's copy")
    assert single.delay(1).id == first.id
    single.release_lock((1,), task_id=first.id)
    assert single.delay(1).id != first.id


class OwnBackend:
    """What a user may have written for celery-singleton."""

    held: ClassVar[dict[str, str]] = {}

    def __init__(self, url: str, **_: Any) -> None:
        self.url = url

    def lock(self, lock: str, task_id: str, expiry: Any = None) -> bool:
        return self.held.setdefault(lock, task_id) == task_id and expiry == 9

    def unlock(self, lock: str) -> None:
        self.held.pop(lock, None)

    def get(self, lock: str) -> str | None:
        return self.held.get(lock)


def test_a_backend_of_ones_own_is_used(app: Celery, single: Any, carry_out: Callable[..., str]) -> None:
    app.conf.update(singleton_backend_class=OwnBackend, singleton_lock_expiry=9, singleton_key_prefix="own:")
    first = single.delay(1)
    assert [key.partition(":")[0] for key in OwnBackend.held] == ["own"]
    assert single.delay(1).id == first.id
    carry_out(single, 1, task_id=first.id)
    assert OwnBackend.held == {}


def test_the_error_passes_through_a_result_backend() -> None:
    again = pickle.loads(pickle.dumps(DuplicateTaskError("why", "id")))  # noqa: S301 - our own
    assert (again.task_id, str(again)) == ("id", "why")
