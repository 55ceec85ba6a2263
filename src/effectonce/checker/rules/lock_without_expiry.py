"""EO305: a lock without an end stays after the death of its holder."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.locks import Lock, locks_of
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for locks in a store that live for ever."""
    for function, tasks in survey.reached:
        for lock in locks_of(function, survey):
            if lock.ttl is None and _is_lock(lock):
                yield function.found(
                    lock.step.call,
                    f"the lock has no end: if a worker dies in task {tasks[0].short!r}, nobody ever gets it again",
                )


def _is_lock(lock: Lock) -> bool:
    """Tell whether the answer decides something; a value that is only stored once is no lock."""
    if lock.is_renewable:
        return True
    return not isinstance(lock.step.statement, ast.Expr)


RULE = Rule(
    code="EO305",
    name="lock-without-expiry",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A lock has no time to live",
    check=check,
)
