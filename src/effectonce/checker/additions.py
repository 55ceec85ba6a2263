"""Additions to stored values: `row.x += n` and its kin, where the row is written afterwards."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import Effect, effect_of
from effectonce.checker.module import Function
from effectonce.checker.names import before, dotted
from effectonce.checker.walk import Step


def additions(function: Function) -> Iterator[tuple[Step, str]]:
    """Each addition in the body of *function*, with the name of the column."""
    for step in function.steps:
        if isinstance(step.node, ast.Call) and effect_of(step) is Effect.RELATIVE:
            yield step, _column(step.call)
            continue
        target = _added(step.node)
        if target is not None and isinstance(target.value, ast.Name) and _is_saved(target.value.id, step, function):
            yield step, target.attr


def _column(call: ast.Call) -> str:
    return next((each.arg for each in call.keywords if each.arg and isinstance(each.value, ast.BinOp)), "the value")


def _added(node: ast.AST) -> ast.Attribute | None:
    match node:
        case ast.AugAssign(target=ast.Attribute() as target, op=ast.Add() | ast.Sub(), value=value):
            return None if _is_text(value) else target
        case ast.Assign(targets=[ast.Attribute() as target], value=ast.BinOp(op=ast.Add() | ast.Sub(), left=left)):
            same = ast.unparse(left) in {ast.unparse(target), f"F('{target.attr}')", f"models.F('{target.attr}')"}
            return target if same else None
        case _:
            return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_saved(name: str, step: Step, function: Function) -> bool:
    """Tell whether the row *name*, which was read from the database, is written after *step*."""
    if not _is_row(name, function):
        return False
    for other in function.calls:
        if other.index > step.index and other.word in {"save", "asave", "commit", "flush"}:
            receiver = other.call.func.value if isinstance(other.call.func, ast.Attribute) else None
            if other.word in {"commit", "flush"} or (isinstance(receiver, ast.Name) and receiver.id == name):
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
    signs = (".objects", "query", ".get()", "scalar")
    return any(any(sign in each for sign in signs) or "get_or_404" in before(each) for each in values)
