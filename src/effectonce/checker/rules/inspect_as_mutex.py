"""EO309: what workers say about themselves is late, incomplete and no lock."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind, Step

_ASKED: Final = re.compile(r"inspect\(\)\.(active|reserved|scheduled|query_task)$")


def check(survey: Survey) -> Iterator[Found]:
    """Look for tasks, and for senders, that ask the workers or the results whether they should go on."""
    for function, tasks in survey.reached:
        for step in function.calls:
            if _ASKED.search(step.name):
                yield function.found(
                    step.call,
                    f"task {tasks[0].short!r} asks the workers what they run: two runs that ask at once both see "
                    "nothing, and a worker that does not answer in time is not counted",
                )
    for function, sends in survey.senders:
        for step in function.calls:
            if (
                not function.is_task
                and _ASKED.search(step.name)
                and any(_depends(send.step, step, function) for send in sends)
            ):
                yield function.found(
                    step.call,
                    "whether the task is sent is decided by what the workers say they run: two callers at once both "
                    "see nothing, and a worker that does not answer in time is not counted",
                )


def _depends(send: Step, asked: Step, function: Function) -> bool:
    if send.index < asked.index:
        return False
    if send.inside(Kind.IF, Kind.ELSE):
        return True
    return any(
        isinstance(step.node, ast.If)
        and asked.index < step.index < send.index
        and isinstance(step.node.body[-1], ast.Return)
        for step in function.steps
    )


RULE = Rule(
    code="EO309",
    name="inspect-as-mutex",
    severity=Severity.ERROR,
    family=Family.LOCKS,
    summary="The workers are asked what they run, in place of a lock",
    check=check,
)
