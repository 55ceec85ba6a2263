"""EO601: two ticks that overlap, and one tick that is sent twice, look the same to the task."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import Effect
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.module import Module
from effectonce.checker.rule import Rule
from effectonce.checker.rules.late_ack_without_idempotency import first_effect
from effectonce.checker.schedules import entries
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


def check(survey: Survey) -> Iterator[Found]:
    """Look for periodic tasks that change something and neither know their instant nor ask about earlier work."""
    for entry in entries(survey):
        task = entry.task
        if task is None or entry.has_arguments or is_answered(task, survey):
            continue
        found = _found(task, survey, entry.module, entry.node)
        if found is not None:
            yield found


def _found(task: Task, survey: Survey, module: Module, node: ast.AST) -> Found | None:
    first = first_effect(task, survey)
    if first is None or first[0] not in {Effect.INSERT, Effect.RELATIVE, Effect.PAYMENT, Effect.MAIL}:
        return None
    effect, function, step = first
    return module.found(
        node,
        f"task {task.short!r} {effect.value} ({function.module.source.path.name}:{step.statement.lineno}) at each tick "
        "and does not know which tick it is: a second beat, a restart or a late run does it again",
    )


RULE = Rule(
    code="EO601",
    name="periodic-without-instant",
    severity=Severity.WARNING,
    family=Family.SCHEDULES,
    summary="A periodic task changes something and does not know its instant",
    check=check,
)
