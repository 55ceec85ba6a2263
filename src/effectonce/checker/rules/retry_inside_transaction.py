"""EO204: a retry is an exception, and rolls back what was written before it."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, writes_before
from effectonce.checker.walk import Kind, Step

_OF_A_WRITE: Final = re.compile(r"id='\w*(Integrity|Database|Operational|Deadlock|Serialization)\w*'")


def check(survey: Survey) -> Iterator[Found]:
    """Look for retries after a write in a transaction."""
    for function, tasks in survey.reached:
        if any(task.is_guarded for task in tasks):
            continue
        for step in function.calls:
            if not step.name.endswith((".retry", "$task.retry")) or not step.name.startswith(("$task", "celery")):
                continue
            if _failed_writing(step):
                continue
            frame = atomic_frame(step)
            write = next(writes_before(step, frame, function), None) if frame is not None else None
            if write is not None:
                yield function.found(
                    step.call,
                    f"the retry leaves the transaction with an exception, so what line {write.call.lineno} wrote is "
                    "rolled back and the next try does not find it",
                )


def _failed_writing(step: Step) -> bool:
    """Tell whether the retry answers a write that failed, which has to be rolled back."""
    return any(
        isinstance(frame.node, ast.ExceptHandler)
        and frame.node.type is not None
        and _OF_A_WRITE.search(ast.dump(frame.node.type)) is not None
        for frame in step.frames(Kind.EXCEPT)
    )


RULE = Rule(
    code="EO204",
    name="retry-inside-transaction",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="A retry rolls back what the task wrote before it",
    check=check,
)
