"""EO511: a rollback does not take back a mail."""

from collections.abc import Iterator

from effectonce.checker.effects import Effect, effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, is_write, session_frame


def check(survey: Survey) -> Iterator[Found]:
    """Look for mails, requests and payments inside transactions that also write."""
    for function, tasks in survey.reached:
        if any(task.is_guarded for task in tasks):
            continue
        for step, effect in effects_of(function):
            if effect not in {Effect.MAIL, Effect.POST, Effect.PAYMENT}:
                continue
            frame = atomic_frame(step) or session_frame(step)
            if frame is not None and any(is_write(other) and other.within(frame) for other in function.calls):
                yield function.found(
                    step.call,
                    f"task {tasks[0].short!r} {effect.value} inside a transaction: when the transaction is rolled back "
                    "this stays, and the next run does it again",
                )


RULE = Rule(
    code="EO511",
    name="effect-inside-transaction",
    severity=Severity.WARNING,
    family=Family.SENDING,
    summary="A mail or a request is sent inside a transaction",
    check=check,
)
