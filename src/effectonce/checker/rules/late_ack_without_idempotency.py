"""EO201: late acknowledgement repeats the task of a worker that died; the body must stand that."""

from collections.abc import Iterator

from effectonce.checker.additions import additions
from effectonce.checker.effects import Effect, effect_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task
from effectonce.checker.walk import Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for late tasks that change something and never ask whether they did."""
    for task in survey.tasks:
        if not task.is_late or is_answered(task, survey):
            continue
        first = first_effect(task, survey)
        if first is not None:
            effect, function, step = first
            yield task.module.found(
                task.node,
                f"task {task.short!r} is acknowledged after its run, so it is run again when its worker dies, "
                f"and it {effect.value} ({function.module.source.path.name}:{step.statement.lineno}) without asking "
                "whether it did before",
            )


def first_effect(task: Task, survey: Survey) -> tuple[Effect, Function, Step] | None:
    """The first thing that *task* changes."""
    for function in survey.bodies(task):
        for step in function.calls:
            effect = effect_of(step)
            if effect is not None:
                return effect, function, step
        for step, _ in additions(function):
            return Effect.RELATIVE, function, step
    return None


RULE = Rule(
    code="EO201",
    name="late-ack-without-idempotency",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="A task with late acknowledgement changes something and never asks whether it did",
    check=check,
)
