"""EO206: a message that waits longer than the visibility timeout is handed out again, and again."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function, Module
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


def check(survey: Survey) -> Iterator[Found]:
    """Compare delays of sends, of retries and of options with the timeout of the broker."""
    for send in survey.all_sends:
        delay = survey.delay_of(send)
        if delay is not None:
            yield from _compared(*delay, send.task, send.module, survey)
    for function, tasks in survey.reached:
        for step in function.calls:
            if step.word == "retry" and step.name.startswith(("$task", tasks[0].function.name)):
                yield from _retry(step.call, function, tasks[0], survey)
    for task in survey.tasks:
        for option in ("default_retry_delay", "retry_backoff_max"):
            found = task.expression(option)
            worth = survey.seconds(found[1], found[0]) if found is not None else None
            if found is not None and worth is not None and task.retries:
                yield from _compared(found[1], worth, task, found[0], survey)


def _retry(call: ast.Call, function: Function, task: Task, survey: Survey) -> Iterator[Found]:
    for each in call.keywords:
        worth = survey.seconds(each.value, function) if each.arg == "countdown" else None
        if worth is not None:
            yield from _compared(each.value, worth, task, function.module, survey)


def _compared(node: ast.expr, delay: float, task: Task | None, module: Module, survey: Survey) -> Iterator[Found]:
    visibility = survey.configuration.visibility(task.module if task is not None else module)
    if visibility is None:
        visibility = survey.configuration.visibility(module)
    if visibility is None or (task is not None and task.is_guarded) or _parks(survey, module):
        return
    limit = (task.time_limit or 0.0) if task is not None and task.is_late else 0.0
    if delay + limit >= visibility:
        yield module.found(
            node,
            f"a delay of {delay:,.0f} s is not shorter than the visibility timeout of {visibility:,.0f} s: "
            "the broker hands the message to another worker while the first one holds it, and it runs more than once",
        )


def _parks(survey: Survey, module: Module) -> bool:
    return survey.configuration.value("effectonce_far_eta", module) in {"park", "raise"}


RULE = Rule(
    code="EO206",
    name="delay-beyond-visibility",
    severity=Severity.ERROR,
    family=Family.ACKS,
    summary="A countdown or eta is not shorter than the broker's visibility timeout",
    check=check,
)
