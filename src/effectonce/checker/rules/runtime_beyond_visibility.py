"""EO207: a late task that may run longer than the visibility timeout is started again while it runs."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


def check(survey: Survey) -> Iterator[Found]:
    """Compare the time limits of late tasks with the timeout of the broker."""
    for task in survey.tasks:
        visibility = survey.configuration.visibility(task.module)
        if visibility is None or not task.is_late or task.is_guarded or task.has_unknown_limit:
            continue
        limit = task.time_limit
        if limit is None:
            yield _found(
                task, survey, f"without a time limit may outlive the visibility timeout of {visibility:,.0f} s"
            )
        elif limit >= visibility:
            yield _found(
                task, survey, f"may run {limit:,.0f} s, the visibility timeout of the broker is {visibility:,.0f} s"
            )


def _found(task: Task, survey: Survey, what: str) -> Found:
    """Point at the task if it says itself that it is late; else once at the setting that says so for all."""
    message = (
        f"task {task.short!r} is acknowledged late and {what}: it is started a second time while the first run goes on"
    )
    if task.expression("acks_late") is not None:
        return task.module.found(task.node, message)
    for setting in survey.configuration.nearest("task_acks_late", task.module):
        return setting.module.found(setting.place, message)
    return task.module.found(task.node, message)


RULE = Rule(
    code="EO207",
    name="runtime-beyond-visibility",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="A late task may run longer than the broker's visibility timeout",
    check=check,
)
