"""What celery-once documents, with the import changed; and what it gets wrong."""

import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from celery import Celery

from effectonce import NotInstalled
from effectonce.compat.celery_once import AlreadyQueued, QueueOnce


@pytest.fixture
def slow(app: Celery) -> Any:
    @app.task(base=QueueOnce, name="slow")
    def slow(a: int, b: int = 2) -> int:
        return a + b

    return slow


def test_a_task_that_is_queued_is_not_queued_again(slow: Any) -> None:
    first = slow.delay(1)
    with pytest.raises(AlreadyQueued, match=r"Expires in 3600.* seconds") as raised:
        slow.apply_async((1,))
    assert (raised.value.countdown, raised.value.task_id) == (3600, first.id)
    assert slow.delay(3).id != first.id


def test_one_that_has_ended_may_be_queued_again(slow: Any, carry_out: Callable[..., str]) -> None:
    first = slow.delay(1)
    assert carry_out(slow, 1, task_id=first.id) == "SUCCESS"
    assert slow.delay(1).id != first.id


def test_so_may_one_that_failed(app: Celery, carry_out: Callable[..., str]) -> None:
    @app.task(base=QueueOnce, name="fails")
    def fails(a: int) -> None:
        raise ValueError(a)

    assert carry_out(fails, 1, task_id=fails.delay(1).id) == "FAILURE"
    fails.delay(1)


def test_a_graceful_one_answers_rejected(app: Celery) -> None:
    @app.task(base=QueueOnce, name="calm", once={"graceful": True})
    def calm(a: int) -> None: ...

    calm.delay(1)
    assert calm.delay(1).state == "REJECTED"
    with pytest.raises(AlreadyQueued):
        calm.apply_async((1,), once={"graceful": False})


def test_keys_choose_the_arguments_that_count(app: Celery) -> None:
    @app.task(base=QueueOnce, name="chosen", once={"keys": ["a"]})
    def chosen(a: int, b: int) -> None: ...

    chosen.delay(1, 2)
    with pytest.raises(AlreadyQueued):
        chosen.delay(1, 3)
    chosen.delay(2, 2)


def test_one_that_unlocks_before_it_runs_may_be_queued_while_it_runs(
    app: Celery, carry_out: Callable[..., str]
) -> None:
    @app.task(base=QueueOnce, name="early", once={"unlock_before_run": True})
    def early(a: int) -> None:
        early.delay(a)

    assert carry_out(early, 1, task_id=early.delay(1).id) == "SUCCESS"
    with pytest.raises(AlreadyQueued):
        early.delay(1)


@pytest.mark.parametrize("call", [((1,), {}), ((1, 2), {}), ((), {"a": 1}), ((1,), {"b": 2}), ((), {"b": 2, "a": 1})])
def test_every_way_to_write_one_call_is_one(slow: Any, call: tuple[Any, Any]) -> None:
    """celery-once took a default that was written for another call."""
    slow.delay(1)
    with pytest.raises(AlreadyQueued):
        slow.apply_async(*call)


def test_a_number_is_not_its_text(app: Celery) -> None:
    @app.task(base=QueueOnce, name="any")
    def any_(a: Any) -> None: ...

    any_.delay(1)
    any_.delay("1")


def test_a_lock_is_given_back_by_its_own_message_alone(slow: Any, carry_out: Callable[..., str]) -> None:
    """In celery-once whoever came last deleted it."""
    slow.delay(1)
    carry_out(slow, 1, task_id="a stranger's copy")
    with pytest.raises(AlreadyQueued):
        slow.delay(1)


def test_the_time_of_a_lock_is_said_at_the_call_the_task_or_the_setting(app: Celery, slow: Any) -> None:
    app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": {"url": "redis://", "default_timeout": 7}}
    slow.delay(1)
    with pytest.raises(AlreadyQueued, match="Expires in 7"):
        slow.delay(1)
    with pytest.raises(AlreadyQueued, match="Expires in 9"):
        slow.apply_async((1,), once={"timeout": 9})


def test_a_lock_whose_message_could_not_be_sent_is_given_back(slow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as away:
        away.setattr(slow.app, "send_task", _away)
        with pytest.raises(ConnectionError):
            slow.delay(1)
    slow.delay(1)


def _away(*_: Any, **__: Any) -> Any:
    raise ConnectionError


class OwnBackend:
    """What a user may have written for celery-once."""

    said: ClassVar[list[Any]] = []

    def __init__(self, settings: dict[str, Any]) -> None:
        self.said.append(settings)

    def raise_or_lock(self, key: str, timeout: float) -> None:
        self.said.append((key, timeout))

    def clear_lock(self, key: str) -> None:
        self.said.append(key)


def test_a_backend_and_a_key_of_ones_own_are_used(app: Celery, carry_out: Callable[..., str]) -> None:
    class Mine(QueueOnce):
        abstract = True

        def get_key(self, args: Any = None, kwargs: Any = None) -> str:
            return "mine:" + super().get_key(args, kwargs)

    @app.task(base=Mine, name="own", bind=True, once={"timeout": 5})
    def own(self: Any, a: int) -> None: ...

    app.conf.ONCE = {"backend": f"{__name__}.OwnBackend", "settings": {"url": "here"}}
    carry_out(own, 1, task_id=own.delay(1).id)
    assert [each for each in OwnBackend.said if each != {"url": "here"}] == [("mine:qo_own_a-1", 5), "mine:qo_own_a-1"]


def test_the_error_passes_through_a_result_backend() -> None:
    again = pickle.loads(pickle.dumps(AlreadyQueued(3.5, "id", "key")))  # noqa: S301 - our own
    assert (again.countdown, again.task_id, again.key, str(again)) == (3.5, "id", "key", "Expires in 3.5 seconds")


def test_an_app_without_effectonce_says_so() -> None:
    bare = Celery("bare-once", broker="memory://", set_as_current=False)

    @bare.task(base=QueueOnce, name="bare")
    def task(a: int) -> None: ...

    with pytest.raises(NotInstalled):
        task.delay(1)
    bare.close()
