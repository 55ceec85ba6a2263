"""EO302: who deletes a lock without looking whose it is may delete the next holder's."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.keyuses import is_store
from effectonce.checker.locks import Lock, locks_of
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind, Step

_DELETES: Final = frozenset({"delete", "unlink"})
_LOCKS: Final = re.compile("lock|mutex|running|progress", re.IGNORECASE)


def check(survey: Survey) -> Iterator[Found]:
    """Look for deletes of the name that was locked."""
    for function, tasks in survey.reached:
        plain = [lock for lock in locks_of(function, survey) if not lock.is_renewable and lock.ttl is not None]
        for lock in plain:
            for step in function.calling(_DELETES):
                if _releases(step, lock, function) and not _looks_first(step):
                    yield function.found(
                        step.call,
                        "this deletes the lock of whoever holds it now: if it ended while task "
                        f"{tasks[0].short!r} was still at work, that is another run's",
                    )


def _releases(step: Step, lock: Lock, function: Function) -> bool:
    if step.inside(Kind.EXCEPT) and not _LOCKS.search(_text(lock.key, function)):
        return False  # a marker of what is done is taken back after a failure
    if step.index <= lock.step.index or not is_store(step.receiver):
        return False
    return bool(step.call.args) and _text(step.call.args[0], function) == _text(lock.key, function)


def _text(node: ast.expr, function: Function) -> str:
    values = function.assigned.get(node.id, []) if isinstance(node, ast.Name) else []
    return ast.dump(values[0] if len(values) == 1 else node)


def _looks_first(step: Step) -> bool:
    """Tell whether the delete depends on what the lock holds, or on how late it is."""
    for frame in step.frames(Kind.IF):
        if isinstance(frame.node, ast.If):
            text = ast.unparse(frame.node.test)
            if any(sign in text for sign in (".get(", "time", "token", "owner", "expire")):
                return True
    return False


RULE = Rule(
    code="EO302",
    name="blind-release",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A lock is deleted without looking whose it is",
    check=check,
)
