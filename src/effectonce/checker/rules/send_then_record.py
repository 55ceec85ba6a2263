"""EO506: a send that is written down afterwards is sent again after a crash between the two."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.names import words
from effectonce.checker.rule import Rule
from effectonce.checker.sends import Send
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, exclusive
from effectonce.checker.walk import Step

_MARKS: Final = {"sent", "notified", "queued", "enqueued", "dispatched", "scheduled"}


def check(survey: Survey) -> Iterator[Found]:
    """Look for a send, and behind it the note that it was sent."""
    for function, sends in survey.senders:
        for send in sends:
            guarded = send.task is not None and send.task.is_guarded
            if send.is_deferred or guarded or send.method == "canvas" or atomic_frame(send.step) is not None:
                continue
            note = next((step for step in function.steps if _notes(step, send, function)), None)
            if note is not None:
                yield function.found(
                    send.step.call,
                    f"the message is out before line {note.statement.lineno} writes that it is: after a crash between "
                    "them it is sent again, with another id",
                )


def _notes(step: Step, send: Send, function: Function) -> bool:
    if step.index <= send.step.index or exclusive(send.step, step):
        return False
    match step.node:
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id=row), attr=name)]):
            return bool(words(name) & _MARKS) and _is_saved(row, step, function)
        case ast.Call(keywords=keywords):
            return (
                step.word == "update"
                and ".objects" in step.name
                and any(each.arg is not None and words(each.arg) & _MARKS for each in keywords)
            )
        case _:
            return False


def _is_saved(row: str, step: Step, function: Function) -> bool:
    return any(
        other.index > step.index
        and isinstance(other.call.func, ast.Attribute)
        and other.call.func.attr in {"save", "commit"}
        and (other.call.func.attr == "commit" or ast.unparse(other.call.func.value) == row)
        for other in function.calls
    )


RULE = Rule(
    code="EO506",
    name="send-then-record",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A send is written down after it was made",
    check=check,
)
