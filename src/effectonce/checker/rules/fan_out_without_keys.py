"""EO508: a task that sends many and is run again sends them again."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.rule import Rule
from effectonce.checker.rules.late_ack_without_idempotency import first_effect
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind


def check(survey: Survey) -> Iterator[Found]:
    """Look for sends in loops of tasks that are repeated, to tasks that change something and ask nothing."""
    for task in survey.tasks:
        if not (task.is_late or task.retries) or is_answered(task, survey):
            continue
        for send in survey.sends(task.function):
            child = send.task
            if child is None or child is task or not send.step.inside(Kind.LOOP) or is_answered(child, survey):
                continue
            if first_effect(child, survey) is not None:
                yield task.module.found(
                    send.step.call,
                    f"when task {task.short!r} is run again it sends these again, also those that were sent before; "
                    f"task {child.short!r} does not notice",
                )


RULE = Rule(
    code="EO508",
    name="fan-out-without-keys",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A task that is repeated sends its children again",
    check=check,
)
