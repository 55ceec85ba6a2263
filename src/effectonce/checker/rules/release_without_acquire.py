"""EO304: who did not get the lock must not give it back."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.locks import Lock, locks_of
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Frame, Kind, Step


def check(survey: Survey) -> Iterator[Found]:
    """Look for releases in a `finally` that also covers the way out of the run that was refused."""
    for function, tasks in survey.reached:
        for lock in locks_of(function, survey):
            for step in function.calls:
                frame = _finally(step)
                if frame is not None and _leaves_refused(frame.node, lock, function):
                    yield function.found(
                        step.call,
                        f"this also runs when task {tasks[0].short!r} did not get the lock, and then frees the lock of "
                        "the run that has it",
                    )


def _finally(step: Step) -> Frame | None:
    if step.word not in {"delete", "release", "unlink"} or step.inside(Kind.IF):
        return None
    return next(step.frames(Kind.FINALLY), None)


def _leaves_refused(node: ast.AST, lock: Lock, function: Function) -> bool:
    """Tell whether the `try` has a way out that a test of the lock opens."""
    if not isinstance(node, ast.Try):
        return False
    names = {
        name
        for name, values in function.assigned.items()
        if any(_holds(value, lock) or _acquires(value) for value in values)
    }
    for statement in node.body:
        for branch in ast.walk(statement):
            if isinstance(branch, ast.If) and isinstance(branch.body[-1], ast.Return | ast.Raise):
                test = branch.test
                named = any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(test))
                if (named or _holds(test, lock) or _acquires(test)) and isinstance(test, ast.UnaryOp):
                    return True
    return False


def _holds(node: ast.expr, lock: Lock) -> bool:
    return any(each is lock.step.node for each in ast.walk(node))


def _acquires(node: ast.expr) -> bool:
    return any(isinstance(each, ast.Attribute) and each.attr == "acquire" for each in ast.walk(node))


RULE = Rule(
    code="EO304",
    name="release-without-acquire",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A lock is released also by the run that did not get it",
    check=check,
)
