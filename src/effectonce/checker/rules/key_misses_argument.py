"""EO106: two works with one key: the second is taken for done."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.effects import effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import leaves
from effectonce.checker.keyuses import KeyUse, key_uses
from effectonce.checker.markers import claims_key, marks_key
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_NO_MATTER: Final = {"self", "cls", "dry_run", "force", "priority", "logger", "verbose", "debug", "args", "kwargs"}


def check(survey: Survey) -> Iterator[Found]:
    """Compare the arguments in the key of a marker with those that the effects use."""
    for task in survey.tasks:
        function = task.function
        if task.is_guarded:
            continue
        for use in key_uses(function):
            if use.how == "claim" and claims_key(use.step) and marks_key(use.step, _source(use, function)):
                missing = _missing(use, function)
                if missing:
                    yield function.found(
                        use.key,
                        f"the key does not hold {', '.join(map(repr, missing))}, which the work depends on: another "
                        f"call of task {task.short!r} with another value is taken for done",
                    )


def _source(use: KeyUse, function: Function) -> str:
    return " ".join(ast.unparse(each) for each in _expressions(use.key, function))


def _expressions(node: ast.expr, function: Function) -> list[ast.expr]:
    values = function.assigned.get(node.id, []) if isinstance(node, ast.Name) else []
    return [node, *values]


def _missing(use: KeyUse, function: Function) -> list[str]:
    held = {
        leaf.id
        for expression in _expressions(use.key, function)
        for leaf in leaves(expression)
        if isinstance(leaf, ast.Name)
    }
    wanted = set(function.parameters) - _NO_MATTER
    if not held & wanted:
        return []
    used = {node.id for step, _ in effects_of(function) for node in ast.walk(step.call) if isinstance(node, ast.Name)}
    return [name for name in function.parameters if name in (wanted & used) - held]


RULE = Rule(
    code="EO106",
    name="key-misses-argument",
    severity=Severity.WARNING,
    family=Family.KEYS,
    summary="The key leaves out an argument that the work depends on",
    check=check,
)
