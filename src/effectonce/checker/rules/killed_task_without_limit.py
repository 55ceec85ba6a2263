"""EO212: a message that kills its worker comes back at once, for ever."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.names import words
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task

_COUNTING: Final = {"starts", "attempts", "deliveries", "tries", "poison", "bury", "quarantine"}


def check(survey: Survey) -> Iterator[Found]:
    """Look for tasks that are requeued when their process is killed, without a bound."""
    for task in survey.tasks:
        found = task.expression("reject_on_worker_lost")
        if found is None or not isinstance(found[1], ast.Constant) or found[1].value is not True or task.is_guarded:
            continue
        if task.is_late and not _counts(task, survey) and not _is_bounded(task, survey):
            yield found[0].found(
                found[1],
                f"if task {task.short!r} kills its process, its message comes back at once and kills the next one, "
                "without end; count the starts, or let the queue limit deliveries",
            )


def _counts(task: Task, survey: Survey) -> bool:
    return any(
        words(step.word) & _COUNTING or "redelivered" in step.name
        for function in survey.bodies(task)
        for step in function.calls
    )


def _is_bounded(task: Task, survey: Survey) -> bool:
    if survey.configuration.value("task_default_queue_type", task.module) == "quorum":
        return True
    return any("delivery-limit" in module.source.text for module in survey.project.modules)


RULE = Rule(
    code="EO212",
    name="killed-task-without-limit",
    severity=Severity.ADVICE,
    family=Family.ACKS,
    summary="A task that kills its worker is requeued without a limit",
    check=check,
)
