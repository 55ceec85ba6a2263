"""Which functions are tasks, and with which options."""

from pathlib import Path

import pytest

from tests.checker.projects import found, lay, survey

DEFINITIONS = {
    "app": "from celery import Celery\napp = Celery('x')\n@app.task\ndef work(): pass\n",
    "called": "from celery import Celery\napp = Celery('x')\n@app.task(bind=True)\ndef work(self): pass\n",
    "shared": "from celery import shared_task\n@shared_task\ndef work(): pass\n",
    "module": "import celery\n@celery.shared_task()\ndef work(): pass\n",
    "alias": "from celery import shared_task as job\n@job\ndef work(): pass\n",
    "other_name": "from celery import Celery\nqueue = Celery('x')\n@queue.task\ndef work(): pass\n",
    "current": "from celery import current_app\n@current_app.task\ndef work(): pass\n",
    "class": "from celery import Task\nclass Work(Task):\n    def run(self): pass\n",
    "class_of_app": "from celery import Celery\napp = Celery('x')\nclass Work(app.Task):\n    def run(self): pass\n",
    "inherited": ("from celery import Task\nclass Base(Task):\n    pass\nclass Work(Base):\n    def run(self): pass\n"),
    "partial": (
        "from functools import partial\nfrom celery import shared_task\nlate = partial(shared_task, acks_late=True)\n"
        "@late\ndef work(): pass\n"
    ),
    "own_class_of_app": (
        "from celery import Celery\nclass Mine(Celery): pass\ncel = Mine('x')\n@cel.task\ndef work(): pass\n"
    ),
    "wrapper": (
        "from celery import shared_task\ndef job(**options):\n    def wrap(function):\n"
        "        return shared_task(**options)(function)\n    return wrap\n@job()\ndef work(): pass\n"
    ),
    "in_a_factory": (
        "from celery import Celery\ndef make():\n    app = Celery('x')\n    @app.task\n    def work(): pass\n"
    ),
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_task_is_known_however_it_is_defined(name: str, tmp_path: Path) -> None:
    lay(tmp_path, tasks=DEFINITIONS[name])
    assert [task.short.lower() for task in survey(tmp_path).tasks] == ["work"]


@pytest.mark.parametrize(
    "text",
    [
        "from invoke import task\n@task\ndef work(c): pass  # celery\n",
        "from airflow.decorators import task\n@task\ndef work(): pass  # celery\n",
        "from locust import task\n@task\ndef work(self): pass  # celery\n",
        "import celery\ndef task(f): return f\n@task\ndef work(): pass\n",
        "from celery import Celery\napp = Celery('x')\n@app.on_after_configure.connect\ndef work(sender): pass\n",
    ],
)
def test_other_decorators_make_no_tasks(text: str, tmp_path: Path) -> None:
    lay(tmp_path, tasks=text)
    assert survey(tmp_path).tasks == []


def test_an_app_is_found_through_imports_and_re_exports(tmp_path: Path) -> None:
    lay(
        tmp_path,
        shop____init__="from .queue import app as celery_app\n",
        shop__queue="from celery import Celery\napp = Celery('shop')\n",
        shop__work__tasks="from shop import celery_app\n@celery_app.task(acks_late=True)\ndef work(): pass\n",
    )
    (task,) = survey(tmp_path).tasks
    assert task.is_late


def test_options_come_from_the_decorator_then_the_base_then_annotations_then_settings(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from celery import Celery, Task

            app = Celery("x")
            app.conf.task_time_limit = 40
            app.conf.task_annotations = {"tasks.third": {"time_limit": 30}}


            class Base(Task):
                time_limit = 20


            @app.task(base=Base, time_limit=10)
            def first(): pass


            @app.task(base=Base)
            def second(): pass


            @app.task
            def third(): pass


            @app.task
            def fourth(): pass
            """,
    )
    limits = {task.short: task.time_limit for task in survey(tmp_path).tasks}
    assert limits == {"first": 10, "second": 20, "third": 30, "fourth": 40}


def test_options_of_a_partial_count(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tools="""\
            from functools import partial
            from celery import shared_task
            late = partial(shared_task, acks_late=True)
            """,
        tasks="from tools import late\n@late(time_limit=5)\ndef work(): pass\n",
    )
    (task,) = survey(tmp_path).tasks
    assert (task.is_late, task.time_limit) == (True, 5)


def test_what_a_task_calls_in_other_modules_is_its_own_doing(tmp_path: Path) -> None:
    lay(
        tmp_path,
        shop____init__="",
        shop__pay="from .provider import move\ndef settle(order): return move(order)\n",
        shop__provider="import stripe\ndef move(order): return stripe.Charge.create(amount=order.amount)\n",
        shop__tasks="""\
            from celery import shared_task
            from shop import pay

            @shared_task
            def work(order): pay.settle(order)
            """,
    )
    assert found(tmp_path) == [("EO101", 4)]


def test_a_method_of_a_task_class_is_its_own_doing(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            import stripe
            from celery import Task


            class Charge(Task):
                def run(self, order):
                    self.move(order)

                def move(self, order):
                    stripe.Charge.create(amount=order)
            """,
    )
    assert found(tmp_path) == [("EO101", 5)]


def test_calls_that_lead_in_circles_end(tmp_path: Path) -> None:
    lay(
        tmp_path,
        tasks="""\
            from celery import shared_task

            def one(): two()
            def two(): one()

            @shared_task
            def work(): one()
            """,
    )
    (task,) = survey(tmp_path).tasks
    assert len(survey(tmp_path).bodies(survey(tmp_path).tasks[0])) == 3
    assert task.short == "work"


def test_modules_that_import_each_other_are_resolved(tmp_path: Path) -> None:
    lay(
        tmp_path,
        one="from two import app\nfrom celery import shared_task\n@shared_task\ndef work(): app()\n",
        two="from one import app\nimport celery\n",
    )
    assert [task.short for task in survey(tmp_path).tasks] == ["work"]
