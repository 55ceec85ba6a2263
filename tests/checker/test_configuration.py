"""Where settings stand, and which one counts."""

from pathlib import Path
from typing import Any

import pytest

from tests.checker.projects import found, lay, survey

PLACES: dict[str, dict[str, str]] = {
    "attribute": {"app": "from celery import Celery\napp = Celery('x')\napp.conf.task_time_limit = 7\n"},
    "item": {"app": "from celery import Celery\napp = Celery('x')\napp.conf['task_time_limit'] = 7\n"},
    "update": {"app": "from celery import Celery\napp = Celery('x')\napp.conf.update(task_time_limit=7)\n"},
    "update_dict": {"app": "from celery import Celery\napp = Celery('x')\napp.conf.update({'task_time_limit': 7})\n"},
    "update_name": {
        "app": "from celery import Celery\nS = {'task_time_limit': 7}\napp = Celery('x')\napp.conf.update(S)\n"
    },
    "celeryconfig": {"celeryconfig": "task_time_limit = 7\n"},
    "named_module": {
        "app": "from celery import Celery\napp = Celery('x')\napp.config_from_object('limits')\n",
        "limits": "task_time_limit = 7\n",
    },
    "named_class": {
        "app": (
            "from celery import Celery\nclass C:\n    task_time_limit = 7\n"
            "app = Celery('x')\napp.config_from_object(C)\n"
        )
    },
    "django": {"shop__settings": "CELERY_TASK_TIME_LIMIT = 7\n"},
    "namespace": {
        "app": (
            "from celery import Celery\napp = Celery('x')\n"
            "app.config_from_object('django.conf:settings', namespace='Q')\n"
        ),
        "settings": "Q_TASK_TIME_LIMIT = 7\n",
    },
    "old_name": {"settings": "CELERYD_TASK_TIME_LIMIT = 7  # celery\n"},
    "flask": {"app": "def make(app):\n    app.config.from_mapping(CELERY=dict(task_time_limit=7))  # Celery(\n"},
    "mapping": {"settings": "CELERY = {'task_time_limit': 7}\n"},
    "in_a_function": {
        "app": "from celery import Celery\ndef make():\n    app = Celery('x')\n    app.conf.task_time_limit = 7\n"
    },
    "arithmetic": {"celeryconfig": "MINUTE = 60\ntask_time_limit = 2 * MINUTE - 113\n"},
    "environment": {"celeryconfig": "import os\ntask_time_limit = int(os.environ.get('LIMIT', '7'))\n"},
    "environ_default": {"settings": "CELERY_TASK_TIME_LIMIT = env.int('LIMIT', default=7)\n"},
    "timedelta": {
        "celeryconfig": "from datetime import timedelta\ntask_time_limit = timedelta(seconds=7).total_seconds()\n"
    },
    "imported": {"celeryconfig": "from numbers_ import LIMIT\ntask_time_limit = LIMIT\n", "numbers_": "LIMIT = 7\n"},
}


@pytest.mark.parametrize("name", PLACES)
def test_a_setting_is_found_wherever_it_stands(name: str, tmp_path: Path) -> None:
    lay(tmp_path, **PLACES[name])
    assert survey(tmp_path).configuration.value("task_time_limit") == 7


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://localhost", "redis"),
        ("rediss://localhost/0", "redis"),
        ("sentinel://localhost", "redis"),
        ("amqp://guest@localhost//", "amqp"),
        ("pyamqp://", "amqp"),
        ("sqs://", "sqs"),
        ("memory://", "memory"),
    ],
)
def test_the_address_of_the_broker_tells_its_kind(url: str, kind: str, tmp_path: Path) -> None:
    lay(tmp_path, app=f"from celery import Celery\napp = Celery('x', broker={url!r})\n")
    assert survey(tmp_path).configuration.broker() == kind


def test_the_nearest_of_several_apps_counts(tmp_path: Path) -> None:
    app = (
        "from celery import Celery\napp = Celery('x')\napp.conf.task_acks_late = {late}\n@app.task\ndef work(): pass\n"
    )
    lay(tmp_path, one__app=app.format(late=True), two__app=app.format(late=False))
    lateness = {task.module.source.path.parent.name: task.is_late for task in survey(tmp_path).tasks}
    assert lateness == {"one": True, "two": False}


def test_settings_that_differ_at_the_same_distance_are_not_known(tmp_path: Path) -> None:
    lay(tmp_path, one__celeryconfig="task_acks_late = True\n", two__celeryconfig="task_acks_late = False\n")
    known: Any = survey(tmp_path).configuration.value("task_acks_late")
    assert known not in {True, False}


def test_what_is_not_known_is_not_reported(tmp_path: Path) -> None:
    lay(
        tmp_path,
        app="""\
            import os
            from celery import Celery

            app = Celery("x", broker=os.environ["BROKER"])


            @app.task
            def work(): pass


            def go(delay):
                work.apply_async(countdown=delay)
                work.apply_async(countdown=100000)
            """,
    )
    assert found(tmp_path) == []


def test_late_acknowledgement_in_the_settings_counts_for_each_task(tmp_path: Path) -> None:
    lay(
        tmp_path,
        shop__settings="CELERY_TASK_ACKS_LATE = True\nCELERY_TASK_REJECT_ON_WORKER_LOST = False\n",
        shop__tasks="""\
            from celery import shared_task
            from django.core.mail import send_mail


            @shared_task
            def one(address): send_mail("a", "b", None, [address])


            @shared_task(acks_late=False)
            def two(address): send_mail("a", "b", None, [address])
            """,
    )
    assert found(tmp_path) == [("EO201", 5)]
