"""EO408: adding a second time changes the sum; setting a second time changes nothing."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import Effect, effect_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import has_guard
from effectonce.checker.module import Function
from effectonce.checker.names import before, dotted, last, words
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Step

_COUNTERS = {
    "count",
    "counter",
    "counts",
    "views",
    "hits",
    "retries",
    "retry",
    "attempts",
    "attempt",
    "tries",
    "failures",
    "errors",
    "version",
    "position",
    "index",
    "offset",
    "progress",
    "stats",
    "revision",
    "sequence",
    "num",
    "number",
    "generation",
    "page",
    "step",
}


def check(survey: Survey) -> Iterator[Found]:
    """Look for additions to stored values in tasks that never ask whether they added before."""
    for function, tasks in survey.reached:
        if all(task.is_guarded for task in tasks) or has_guard(function) or any(has_guard(t.function) for t in tasks):
            continue
        for node, column in [*_updates(function), *_additions(function)]:
            if not words(column) & _COUNTERS:
                yield function.found(
                    node,
                    f"task {tasks[0].short!r} adds to {column!r} instead of setting it: "
                    "each repeat of the message adds again",
                )


def _updates(function: Function) -> Iterator[tuple[ast.AST, str]]:
    """`update(x=F("x") + n)` and its SQL."""
    for step in function.calls:
        if effect_of(step) is not Effect.RELATIVE:
            continue
        column = next(
            (each.arg for each in step.call.keywords if each.arg and isinstance(each.value, ast.BinOp)), "the value"
        )
        yield step.call, column


def _additions(function: Function) -> Iterator[tuple[ast.AST, str]]:
    """`row.x += n`, `row.x = row.x + n`, `row.x = F("x") + n`, where the row is saved afterwards."""
    for step in function.steps:
        target = _added(step.node)
        if target is not None and isinstance(target.value, ast.Name) and _is_saved(target.value.id, step, function):
            yield step.node, target.attr


def _added(node: ast.AST) -> ast.Attribute | None:
    match node:
        case ast.AugAssign(target=ast.Attribute() as target, op=ast.Add() | ast.Sub(), value=value):
            return (
                None if isinstance(value, ast.Constant | ast.JoinedStr) and isinstance(value, ast.JoinedStr) else target
            )
        case ast.Assign(targets=[ast.Attribute() as target], value=ast.BinOp(op=ast.Add() | ast.Sub(), left=left)):
            same = ast.unparse(left) in {ast.unparse(target), f"F('{target.attr}')", f"models.F('{target.attr}')"}
            return target if same else None
        case _:
            return None


def _is_saved(name: str, step: Step, function: Function) -> bool:
    """Tell whether the row *name*, which was read from the database, is written after *step*."""
    if not _is_row(name, function):
        return False
    for other in function.calls:
        if other.index > step.index and last(other.name) in {"save", "asave", "commit", "flush"}:
            receiver = other.call.func.value if isinstance(other.call.func, ast.Attribute) else None
            if last(other.name) in {"commit", "flush"} or (isinstance(receiver, ast.Name) and receiver.id == name):
                return True
    return False


def _is_row(name: str, function: Function) -> bool:
    values = [dotted(value, function.scope) for value in function.assigned.get(name, [])]
    loops = [
        step.node.iter
        for step in function.steps
        if isinstance(step.node, ast.For) and isinstance(step.node.target, ast.Name) and step.node.target.id == name
    ]
    values += [dotted(node, function.scope) for node in loops]
    return any(
        ".objects" in each or "query" in each or ".get()" in each or "scalar" in each or "get_or_404" in before(each)
        for each in values
    )


RULE = Rule(
    code="EO408",
    name="relative-update",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="A task adds to a stored value instead of setting it",
    check=check,
)
