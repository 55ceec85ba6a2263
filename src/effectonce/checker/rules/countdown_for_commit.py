"""EO504: a few seconds of delay are a bet on the commit, and no wait for it."""

import ast
from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.module import Function
from effectonce.checker.names import dotted, last
from effectonce.checker.rule import Rule
from effectonce.checker.sends import Send
from effectonce.checker.survey import Survey

LONGEST = 30.0


def check(survey: Survey) -> Iterator[Found]:
    """Look for short delays of sends that name a row which was written just before."""
    for function, sends in survey.senders:
        for send in sends:
            delay = survey.delay_of(send)
            if delay is None or not 0 < delay[1] <= LONGEST or send.is_deferred:
                continue
            row = next((name for name in _rows(send) if _is_fresh(name, send, function)), None)
            if row is not None:
                yield function.found(
                    delay[0],
                    f"{delay[1]:,.0f} s are to give the commit of {row!r} time; a slow commit is later all the same, "
                    "and a rollback does not take the message back",
                )
    for task in survey.tasks:
        found = task.expression("autoretry_for")
        if found is None or "DoesNotExist" not in ast.unparse(found[1]):
            continue
        if any(send.task is task and not send.is_deferred for send in survey.all_sends):
            yield found[0].found(
                found[1],
                f"task {task.short!r} is retried until its row is there: it is sent before the commit, and a rolled "
                "back row makes it fail for nothing",
            )


def _rows(send: Send) -> Iterator[str]:
    for argument in send.arguments:
        if (
            isinstance(argument, ast.Attribute)
            and argument.attr in {"pk", "id"}
            and isinstance(argument.value, ast.Name)
        ):
            yield argument.value.id


def _is_fresh(name: str, send: Send, function: Function) -> bool:
    values = [dotted(value, function.scope) for value in function.assigned.get(name, [])]
    if any(last(value) in {"create()", "get_or_create()", "save()"} for value in values):
        return True
    return any(
        step.index < send.step.index
        and isinstance(step.call.func, ast.Attribute)
        and step.call.func.attr == "save"
        and isinstance(step.call.func.value, ast.Name)
        and step.call.func.value.id == name
        for step in function.calls
    )


RULE = Rule(
    code="EO504",
    name="countdown-for-commit",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A short delay stands in for waiting for the commit",
    check=check,
)
