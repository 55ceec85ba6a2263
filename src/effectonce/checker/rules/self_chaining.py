"""EO509: a chain of tasks that send themselves splits in two when one link is delivered twice."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind


def check(survey: Survey) -> Iterator[Found]:
    """Look for tasks that send themselves and do not ask whether this step was made."""
    for task in survey.tasks:
        if is_answered(task, survey):
            continue
        for send in survey.sends(task.function):
            if send.task is task and not send.step.inside(Kind.EXCEPT, Kind.LOOP):
                yield task.module.found(
                    send.step.call,
                    f"task {task.short!r} goes on by sending itself: a link that is delivered twice makes two chains, "
                    "and each of them goes on to the end",
                )


RULE = Rule(
    code="EO509",
    name="self-chaining",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A task goes on by sending itself, and a repeat makes two chains",
    check=check,
)
