"""EO303: between the look at a lock and the taking of it another run takes it."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.keyuses import is_store
from effectonce.checker.locks import is_throttle
from effectonce.checker.module import Function
from effectonce.checker.names import before, last
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Step

_SETS: Final = frozenset({"set", "setex"})


def check(survey: Survey) -> Iterator[Found]:
    """Look for a test of a key that leaves the body, and a plain `set` of the same key behind it."""
    for function, tasks in survey.reached:
        for _, branch in function.branches if function.calling(_SETS) else ():
            if not _gives_up(branch):
                continue
            look = _look(branch.test, function)
            taken = _taken(look, function) if look is not None else None
            if look is not None and taken is not None:
                yield function.found(
                    taken.call,
                    f"line {look.lineno} looks whether the key is there and this line sets it: two runs of task "
                    f"{tasks[0].short!r} at once both find nothing and both go on; set it only if it is not there",
                )


def _gives_up(branch: ast.If) -> bool:
    """Tell whether the branch leaves with nothing: who returns what was found has a cache and no lock."""
    match branch.body[-1]:
        case ast.Return(value=None) | ast.Return(value=ast.Constant()) | ast.Raise() | ast.Continue():
            return True
        case _:
            return False


def _look(test: ast.expr, function: Function) -> ast.Call | None:
    pending: list[ast.AST] = [test]
    for node in ast.walk(test):
        if isinstance(node, ast.Name):
            pending.extend(function.assigned.get(node.id, [])[:1])
    for each in pending:
        for node in ast.walk(each):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            name = function.name_of(node)
            if last(name) in {"get", "exists"} and is_store(before(name)):
                return node
    return None


def _taken(look: ast.Call, function: Function) -> Step | None:
    key = ast.dump(look.args[0])
    if is_throttle(look.args[0]):
        return None
    for step in function.calling(_SETS):
        if not is_store(step.receiver) or not step.call.args:
            continue
        plain = not any(each.arg == "nx" for each in step.call.keywords)
        if plain and ast.dump(step.call.args[0]) == key and step.call.lineno > look.lineno and _is_flag(step.call):
            return step
    return None


def _is_flag(call: ast.Call) -> bool:
    """Tell whether what is stored is a flag, and not something that was computed."""
    value = call.args[-1] if len(call.args) > 1 else None
    if len(call.args) > 2:  # noqa: PLR2004 - key, value, time to live
        value = call.args[1]
    return isinstance(value, ast.Constant | ast.JoinedStr) or (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name | ast.Attribute)
        and "time" in ast.unparse(value)
    )


RULE = Rule(
    code="EO303",
    name="get-then-set-lock",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A lock is looked at and then set, in two steps",
    check=check,
)
