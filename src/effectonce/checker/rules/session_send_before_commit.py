"""EO502: a task that is sent between `add` and `commit` may be faster than the commit."""

from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.sends import Send
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import exclusive, is_session, session_frame
from effectonce.checker.walk import Step

_WRITES: Final = {"add", "add_all", "flush", "merge", "delete", "bulk_save_objects"}

_ENDS: Final = {"commit", "rollback"}


def check(survey: Survey) -> Iterator[Found]:
    """Look for sends between a write of a session and its commit."""
    for function, sends in survey.senders:
        for send in sends:
            if send.is_deferred or survey.is_guarded(function):
                continue
            write = _write_before(send, function)
            end = _commit_after(send, function) if write is not None else None
            if write is not None and end is not None:
                yield function.found(
                    send.step.call,
                    f"the task is sent after the write in line {write.call.lineno} and before {end}: a worker may run "
                    "it before the rows are there, and a rollback does not take it back",
                )


def _write_before(send: Send, function: Function) -> Step | None:
    """The last write of a session before the send, unless a commit stands between them."""
    write: Step | None = None
    for step in function.calls:
        if step.index >= send.step.index:
            break
        if step.word not in _WRITES | _ENDS or not is_session(step.receiver) or exclusive(step, send.step):
            continue
        write = step if step.word in _WRITES else None
    return write


def _commit_after(send: Send, function: Function) -> str | None:
    frame = session_frame(send.step)
    if frame is not None:
        return "the end of the transaction"
    for step in function.calls:
        is_commit = step.word == "commit" and is_session(step.receiver)
        if step.index > send.step.index and is_commit and not exclusive(send.step, step):
            return f"the commit in line {step.call.lineno}"
    return None


RULE = Rule(
    code="EO502",
    name="session-send-before-commit",
    severity=Severity.ERROR,
    family=Family.SENDING,
    summary="A task is sent between the write of a session and its commit",
    check=check,
)
