"""EO507: a send that raised may have arrived."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered
from effectonce.checker.rule import Rule
from effectonce.checker.sends import Send
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Kind

_OF_A_SEND: Final = re.compile(
    r"^(Base)?Exception$|^(OS|IO|Environment|Connection|Operational|Kombu|Celery|Channel|AMQP|Redis)Error$|^error$"
)
"""Names of the classes that what `delay` raises belongs to; a request elsewhere that timed out is none of them."""


def check(survey: Survey) -> Iterator[Found]:
    """Look for sends that are made again when they failed."""
    for function, sends in survey.senders:
        for send in sends:
            answered = send.task is not None and is_answered(send.task, survey)
            if send.is_deferred or answered or "task_id" in send.options or not send.step.inside(Kind.TRY):
                continue
            again = any(other is not send and _is_second(other, send) for other in sends)
            if again or _in_retrying_loop(send):
                yield function.found(
                    send.step.call,
                    "a send that fails may have reached the broker before its answer was lost; sent again it has "
                    "another id, and the task runs twice",
                )


def _is_second(other: Send, send: Send) -> bool:
    """Tell whether *other* stands in the `except` of the `try` that *send* stands in."""
    if other.target != send.target:
        return False
    clauses = {id(frame.node) for frame in other.step.frames(Kind.EXCEPT)}
    return any(
        id(clause) in clauses
        for frame in send.step.frames(Kind.TRY)
        if isinstance(frame.node, ast.Try)
        for clause in frame.node.handlers
        if _catches_a_send(clause)
    )


def _catches_a_send(clause: ast.ExceptHandler) -> bool:
    """Tell whether a send that failed comes to this clause: a row that does not exist is no broker's error."""
    classes = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
    names = [getattr(each, "attr", getattr(each, "id", None)) for each in classes]
    return any(name is None or _OF_A_SEND.search(name) for name in names)


def _in_retrying_loop(send: Send) -> bool:
    """Tell whether the send is tried in a loop that ends with its success."""
    attempt = next((frame.node for frame in send.step.frames(Kind.TRY)), None)
    loop = next((frame.node for frame in send.step.frames(Kind.LOOP)), None)
    if not isinstance(attempt, ast.Try) or not isinstance(loop, ast.For | ast.While) or attempt not in loop.body:
        return False
    ends = any(isinstance(each, ast.Break | ast.Return) for each in [*attempt.body, *attempt.orelse])
    caught = [each for each in attempt.handlers if _catches_a_send(each)]
    goes_on = all(not isinstance(each.body[-1], ast.Raise | ast.Return | ast.Break) for each in caught)
    return bool(caught) and ends and goes_on


RULE = Rule(
    code="EO507",
    name="resend-on-exception",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A send that failed is made again with another id",
    check=check,
)
