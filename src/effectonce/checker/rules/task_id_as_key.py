"""EO104: the task id is the same in a retry and another one when the caller repeats."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import leaves
from effectonce.checker.keyuses import key_uses
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_DEEPEST: Final = 3


def check(survey: Survey) -> Iterator[Found]:
    """Look for claims in a store whose whole key is the id of the task."""
    for function, tasks in survey.reached:
        for use in key_uses(function):
            if not use.column and use.how in {"claim", "lookup"} and _is_only_id(use.key, function):
                yield function.found(
                    use.key,
                    f"the whole key is the task id: a retry of {tasks[0].short!r} stops here as if it were done, and a "
                    "caller who repeats gets another id",
                )


def _is_only_id(node: ast.expr, function: Function) -> bool:
    origins = list(_origins(node, function, _DEEPEST))
    return bool(origins) and all(
        isinstance(each, ast.Attribute) and ast.unparse(each).endswith("request.id") for each in origins
    )


def _origins(node: ast.expr, function: Function, depth: int) -> Iterator[ast.AST]:
    """What *node* is made of, through local names."""
    for leaf in leaves(node):
        values = function.assigned.get(leaf.id) if isinstance(leaf, ast.Name) else None
        if values and depth > 0:
            for value in values:
                yield from _origins(value, function, depth - 1)
        elif not isinstance(leaf, ast.Constant):
            yield leaf


RULE = Rule(
    code="EO104",
    name="task-id-as-key",
    severity=Severity.WARNING,
    family=Family.KEYS,
    summary="The whole key is the id of the task",
    check=check,
)
