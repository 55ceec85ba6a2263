"""EO308: what one process remembers, the others do not know."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function, Module
from effectonce.checker.names import dotted
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_LOCKS: Final = frozenset({"Lock", "RLock"})


def check(survey: Survey) -> Iterator[Found]:
    """Look for tasks that give up because of a set, a dictionary or a lock of their own process."""
    held_in: dict[str, set[str]] = {}
    for function, tasks in survey.reached:
        module = function.module
        if module.name not in held_in:
            held_in[module.name] = {name for name, value in module.constants.items() if _is_held(value, module)}
        held = held_in[module.name]
        if not held:
            continue
        for _, branch in function.branches:
            name = _asked(branch, held)
            if name is not None and _is_changed(name, function):
                yield function.found(
                    branch.test,
                    f"{name!r} lives in one process; the other processes and workers that run task "
                    f"{tasks[0].short!r} have their own, and all are empty after a restart",
                )


def _is_held(value: ast.expr, module: Module) -> bool:
    match value:
        case ast.Set() | ast.Dict(keys=[]) | ast.List(elts=[]):
            return True
        case ast.Call(func=ast.Name(id="set" | "dict" | "list")):
            return not value.args
        case ast.Call(func=func):
            return dotted(func, {}).removeprefix("threading.") in _LOCKS and "threading" in module.source.text
        case _:
            return False


def _asked(branch: ast.If, held: set[str]) -> str | None:
    """The name of the guard, where a branch leaves because of it."""
    test = branch.test.operand if isinstance(branch.test, ast.UnaryOp) else branch.test
    leaves = isinstance(branch.body[-1], ast.Return) and getattr(branch.body[-1], "value", None) is None
    match test:
        case ast.Compare(ops=[ast.In()], comparators=[ast.Name(id=name)]) if leaves and name in held:
            return name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="acquire")) if leaves and name in held:
            return name
        case _:
            return None


def _is_changed(name: str, function: Function) -> bool:
    text = ast.unparse(function.node)
    return any(sign in text for sign in (f"{name}.add(", f"{name}.append(", f"{name}[", f"{name}.acquire("))


RULE = Rule(
    code="EO308",
    name="process-local-guard",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A task gives up because of what its own process remembers",
    check=check,
)
