"""EO307: a lock that is freed before the commit shows the next run the old rows."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.locks import locks_of
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, is_write, session_frame


def check(survey: Survey) -> Iterator[Found]:
    """Look for locks that are taken and freed inside a transaction."""
    for function, tasks in survey.reached:
        for lock in locks_of(function, survey):
            frame = atomic_frame(lock.step) or session_frame(lock.step)
            if frame is None or not isinstance(lock.step.statement, ast.With | ast.AsyncWith):
                continue
            if any(is_write(step) and step.index > lock.step.index for step in function.calls):
                yield function.found(
                    lock.step.call,
                    f"the lock of task {tasks[0].short!r} is freed before the transaction around it commits: the next "
                    "holder does not see what was written under it",
                )


RULE = Rule(
    code="EO307",
    name="lock-inside-transaction",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="A lock is freed before the transaction around it commits",
    check=check,
)
