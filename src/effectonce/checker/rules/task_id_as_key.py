"""EO104: the task id is the same in a retry and another one when the caller repeats."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import leaves
from effectonce.checker.keyuses import key_uses
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


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
    found = [leaf for leaf in leaves(node) if not isinstance(leaf, ast.Constant)]
    named = [
        value
        for leaf in found
        for value in (function.assigned.get(leaf.id, [leaf]) if isinstance(leaf, ast.Name) else [leaf])
    ]
    return bool(named) and all(
        isinstance(each, ast.Attribute) and ast.unparse(each).endswith("request.id") for each in named
    )


RULE = Rule(
    code="EO104",
    name="task-id-as-key",
    severity=Severity.WARNING,
    family=Family.KEYS,
    summary="The whole key is the id of the task",
    check=check,
)
