"""Tasks of every kind of definition are guarded (CELERY 1.2)."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from celery import Celery, Task, shared_task

from effectonce import EffectOnce, Leased, NotInstalled


def twice(task: Any, *args: Any) -> list[Any]:
    """Two eager deliveries of one call."""
    return [task.apply(args).get(), task.apply(args).get()]


def test_a_plain_task(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(once=Leased("k:{x}"))
    def work(x: int) -> int:
        seen.append((x, once.effect.key))
        return x + 1

    assert twice(work, 1) == [2, 2]
    assert seen == [(1, "k:1")]


def test_a_bound_task(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(bind=True, once=Leased("k:{x}"))
    def work(self: Task, x: int) -> str:
        seen.append(once.effect.fence)
        return str(self.request.id is not None)

    assert twice(work, 1) == ["True", "True"]
    assert len(seen) == 1


def test_a_class_based_task(app: Celery, once: EffectOnce) -> None:
    seen = []

    class Work(Task):
        name = "class-based"
        once = Leased("k:{x}")

        def run(self, x: int) -> int:
            seen.append(x)
            return x

    assert twice(app.register_task(Work()), 1) == [1, 1]
    assert seen == [1]


def test_a_class_based_task_with_autoretry(app: Celery, once: EffectOnce) -> None:
    """Celery keeps the bare body before it binds such a task."""
    seen = []

    class Work(Task):
        name = "class-based-autoretry"
        once = Leased("k:{x}")
        autoretry_for = (ValueError,)
        default_retry_delay = 0

        def run(self, x: int) -> int:
            seen.append(self.request.retries)
            if self.request.retries < 2:
                raise ValueError(x)
            return x

    assert twice(app.register_task(Work()), 1) == [1, 1]
    assert seen == [0, 1, 2]


def test_a_shared_task(app: Celery, once: EffectOnce) -> None:
    seen = []

    @shared_task(name="shared", once=Leased("k:{x}"))
    def work(x: int) -> int:
        seen.append(x)
        return x

    assert twice(app.tasks["shared"], 1) == [1, 1]
    assert seen == [1]


def test_a_task_with_a_base_that_has_its_own_call(app: Celery, once: EffectOnce) -> None:
    """Flask's documented pattern: the app context is pushed in ``__call__``, and the body needs it."""
    context: list[str] = []
    seen = []

    class ContextTask(Task):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            context.append("pushed")
            try:
                return self.run(*args, **kwargs)
            finally:
                context.pop()

    @app.task(base=ContextTask, once=Leased("k:{x}"))
    def work(x: int) -> int:
        seen.append(list(context))
        return x

    assert twice(work, 1) == [1, 1]
    assert seen == [["pushed"]]


def test_a_decorated_call_keeps_its_decorator(app: Celery, once: EffectOnce) -> None:
    """Celery's own ``@__call__`` form would unwrap it."""
    noted = []

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def noted_call(self: Task, *args: Any) -> Any:
            noted.append(args)
            return call(self, *args)

        return noted_call

    class Base(Task):
        @noting
        def __call__(self, *args: Any) -> Any:
            return super().__call__(*args)

    @app.task(base=Base, once=Leased("k:{x}"))
    def work(x: int) -> int:
        return x

    assert twice(work, 1) == [1, 1]
    assert noted == [(1,), (1,)]


def test_a_task_bound_before_the_library_was_installed(make_app: Callable[..., Celery]) -> None:
    app, seen = make_app(), []

    @app.task(once=Leased("k:{x}"), autoretry_for=(ValueError,), default_retry_delay=0)
    def work(x: int) -> int:
        seen.append(x)
        if len(seen) < 3:
            raise ValueError(x)
        return x

    app.finalize()
    EffectOnce(app, ledger="memory://bound-before")
    assert twice(work, 1) == [1, 1]
    assert seen == [1, 1, 1]


def test_the_users_annotations_still_count(make_app: Callable[..., Celery]) -> None:
    app = make_app(task_annotations={"*": {"rate_limit": "7/s"}, "named": {"priority": 3}})
    EffectOnce(app, ledger="memory://annotations")
    named = app.task(name="named", once=Leased("k:{x}"))(_identity)
    other = app.task(name="other")(_identity)
    app.finalize()
    assert (named.rate_limit, named.priority, other.rate_limit) == ("7/s", 3, "7/s")
    assert twice(named, 1) == [1, 1]


def test_a_host_gives_a_package_task_its_policy_through_annotations(make_app: Callable[..., Celery]) -> None:
    app, seen = make_app(task_annotations={"package": {"once": Leased("k:{x}")}}), []
    EffectOnce(app, ledger="memory://host")

    @app.task(name="package")
    def work(x: int) -> int:
        seen.append(x)
        return x

    assert twice(work, 1) == [1, 1]
    assert seen == [1]


def test_a_task_without_a_policy_is_left_as_it_is(app: Celery, once: EffectOnce) -> None:
    @app.task
    def work(x: int) -> int:
        return x

    app.finalize()
    assert "__call__" not in vars(type(work))
    assert not work.acks_late
    assert work(1) == 1


def test_another_app_in_the_process_is_not_guarded(make_app: Callable[..., Celery], once: EffectOnce) -> None:
    other, seen = make_app(), []

    @other.task
    def work(x: int) -> None:
        seen.append(x)

    twice(work, 1)
    assert seen == [1, 1]


def test_a_policy_on_an_app_without_effectonce_refuses_to_run(make_app: Callable[..., Celery]) -> None:
    other, seen = make_app(), []

    @other.task(name="lonely", once=Leased("k:{x}"))
    def work(x: int) -> None:
        seen.append(x)

    with pytest.raises(NotInstalled, match="lonely"):
        work(1)
    with pytest.raises(NotInstalled):
        work.apply((1,)).get()
    assert seen == []


def test_guarded_tasks_are_acknowledged_late_unless_they_say_otherwise(app: Celery, once: EffectOnce) -> None:
    late = app.task(name="late", once=Leased("k:{x}"))(_identity)
    early = app.task(name="early", acks_late=False, reject_on_worker_lost=False, once=Leased("k:{x}"))(_identity)
    app.finalize()
    assert (late.acks_late, late.reject_on_worker_lost) == (True, True)
    assert (early.acks_late, early.reject_on_worker_lost) == (False, False)


def test_items_of_a_map_are_guarded_by_key(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(once=Leased("k:{x}"))
    def work(x: int) -> int:
        seen.append(x)
        return x * 2

    assert work.map([1, 2, 1]).apply().get() == [2, 4, 2]
    assert work.starmap([(2,), (3,)]).apply().get() == [4, 6]
    assert seen == [1, 2, 3]


def test_an_eager_retry_is_not_a_duplicate_of_itself(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(bind=True, once=Leased("k:{x}"))
    def work(self: Task, x: int) -> int:
        seen.append(self.request.retries)
        if not self.request.retries:
            raise self.retry(countdown=0)
        return x

    assert work.apply((1,)).get() == 1
    assert seen == [0, 1]


def test_a_body_that_calls_its_own_task_directly_is_guarded_by_the_other_key(app: Celery, once: EffectOnce) -> None:
    seen = []

    @app.task(once=Leased("k:{x}"))
    def work(x: int) -> int:
        seen.append((x, once.effect.key))
        return work(x - 1) + 1 if x else 0

    assert work.apply((2,)).get() == 2
    assert work.apply((2,)).get() == 2
    assert seen == [(2, "k:2"), (1, "k:1"), (0, "k:0")]


def _identity(x: int) -> int:
    return x
