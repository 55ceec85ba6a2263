"""EO203: the flag `redelivered` says neither that a message ran, nor that it did not."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for bodies that leave because of the flag."""
    for function, tasks in survey.reached:
        for _, branch in function.branches if "redelivered" in function.module.source.text else ():
            if _leaves(branch.body[-1]) and _asks_flag(branch.test, function):
                yield function.found(
                    branch.test,
                    f"task {tasks[0].short!r} gives up because the message was redelivered: prefetched messages that "
                    "never ran carry this flag too, and real repeats may not",
                )


def _asks_flag(test: ast.expr, function: Function) -> bool:
    for node in ast.walk(test):
        if isinstance(node, ast.Constant) and node.value == "redelivered":
            return True
        if isinstance(node, ast.Name):
            values = function.assigned.get(node.id, [])
            if any("redelivered" in ast.unparse(value) for value in values):
                return True
    return False


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Return | ast.Raise)


RULE = Rule(
    code="EO203",
    name="redelivered-returns",
    severity=Severity.ERROR,
    family=Family.ACKS,
    summary="A task gives up because its message was redelivered",
    check=check,
)
