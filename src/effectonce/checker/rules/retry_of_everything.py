"""EO205: a retry after any error also repeats what had already happened."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.rules.late_ack_without_idempotency import first_effect
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task
from effectonce.checker.walk import Kind, Step

_ALL: Final = {"Exception", "BaseException"}


def check(survey: Survey) -> Iterator[Found]:
    """Look for tasks that change something and are retried whatever went wrong."""
    for task in survey.tasks:
        node = _retried(task)
        if node is None or is_answered(task, survey):
            continue
        first = first_effect(task, survey)
        if first is not None and not _is_last(first[1], first[2], task):
            effect, function, step = first
            yield task.module.found(
                node,
                f"task {task.short!r} is retried after any error, also after one that came behind line "
                f"{step.statement.lineno} of {function.module.source.path.name}, which {effect.value} again",
            )


def _is_last(function: Function, step: Step, task: Task) -> bool:
    """Tell whether nothing can fail behind the effect, because nothing is there."""
    return function is task.function and function.node.body[-1] is step.statement


def _retried(task: Task) -> ast.AST | None:
    """Where the task says that it is retried after everything."""
    found = task.expression("autoretry_for")
    if found is not None and _names_all(found[1]):
        return found[1] if found[0] is task.module else task.node
    for step in task.function.calls:
        if step.name != "$task.retry":
            continue
        for frame in step.frames(Kind.EXCEPT):
            if isinstance(frame.node, ast.ExceptHandler) and (frame.node.type is None or _names_all(frame.node.type)):
                return step.call
    return None


def _names_all(node: ast.expr) -> bool:
    listed = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
    return any(isinstance(each, ast.Name) and each.id in _ALL for each in listed)


RULE = Rule(
    code="EO205",
    name="retry-of-everything",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="A task is retried after any error, also after its effect",
    check=check,
)
