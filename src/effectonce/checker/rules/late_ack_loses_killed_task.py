"""EO202: late acknowledgement alone does not save a task whose pool process is killed."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


def check(survey: Survey) -> Iterator[Found]:
    """Look for late tasks that do not say what happens when their process is lost."""
    for task in survey.tasks:
        if not task.is_late or task.is_guarded or task.option("reject_on_worker_lost") is not None:
            continue
        pool = survey.configuration.value("worker_pool", task.module)
        if pool not in {"threads", "gevent", "eventlet", "solo"}:
            yield _found(task, survey)


def _found(task: Task, survey: Survey) -> Found:
    message = (
        f"task {task.short!r} is acknowledged late, but a killed pool process (out of memory) acknowledges it all the "
        "same and the work is lost; say what you want with reject_on_worker_lost"
    )
    if task.expression("acks_late") is None:
        for setting in survey.configuration.nearest("task_acks_late", task.module):
            return setting.module.found(setting.place, message)
    return task.module.found(task.node, message)


RULE = Rule(
    code="EO202",
    name="late-ack-loses-killed-task",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="A late task does not say what happens when its process is killed",
    check=check,
)
