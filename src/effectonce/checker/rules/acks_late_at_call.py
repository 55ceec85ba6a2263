"""EO210: `apply_async` takes no `acks_late`; it is an option of the task."""

from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_OPTIONS: Final = ("acks_late", "reject_on_worker_lost", "autoretry_for", "max_retries")


def check(survey: Survey) -> Iterator[Found]:
    """Look for options of tasks that are given to a send."""
    for send in survey.all_sends:
        if send.method not in {"apply_async", "send_task"}:
            continue
        for option in _OPTIONS:
            if option in send.options:
                yield send.module.found(
                    send.options[option],
                    f"{option} is an option of the task; given to a send it is ignored, and the task keeps its own",
                )


RULE = Rule(
    code="EO210",
    name="acks-late-at-call",
    severity=Severity.ERROR,
    family=Family.ACKS,
    summary="An option of the task is given to a send, which ignores it",
    check=check,
)
