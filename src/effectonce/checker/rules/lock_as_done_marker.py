"""EO306: a lock keeps two runs apart, it does not know that the first one is done."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import Effect, effect_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.locks import Lock, locks_of
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for effects under a lock in tasks that are repeated, without a look at what is done."""
    for function, tasks in survey.reached:
        repeated = [
            each for each in tasks if (each.is_late or each.retries) and not is_answered(each, survey, by_locks=False)
        ]
        for lock in locks_of(function, survey) if repeated else ():
            step = _effect_under(lock, function)
            if step is not None:
                yield function.found(
                    lock.step.call,
                    f"the lock keeps a second run of task {repeated[0].short!r} away only while the first one is at "
                    f"work; a repeat that comes later does line {step.call.lineno} again",
                )


def _effect_under(lock: Lock, function: Function) -> Step | None:
    for step in function.calls:
        if step.index <= lock.step.index or effect_of(step) in {None, Effect.MAIL}:
            continue
        contexts = (each.node for each in step.frames(Kind.WITH))
        if any(lock.step.node is node for each in contexts for node in ast.walk(_head(each))):
            return step
    return None


def _head(node: ast.AST) -> ast.AST:
    """The contexts of a `with`, without its body."""
    if isinstance(node, ast.With | ast.AsyncWith):
        return ast.Tuple(elts=[item.context_expr for item in node.items], ctx=ast.Load())
    return ast.Pass()


RULE = Rule(
    code="EO306",
    name="lock-as-done-marker",
    severity=Severity.WARNING,
    family=Family.LOCKS,
    summary="A lock is taken for the knowledge that the work is done",
    check=check,
)
