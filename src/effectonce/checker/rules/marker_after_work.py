"""EO404: a marker in a transaction of its own, after the work's, is missing after a crash between them."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.markers import MARKING, marks_row
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.transactions import atomic_frame, exclusive, is_write


def check(survey: Survey) -> Iterator[Found]:
    """Look for markers behind the transaction of the work."""
    for function, tasks in survey.reached:
        if any(task.is_guarded for task in tasks):
            continue
        for step in function.calling(MARKING):
            if not marks_row(step, function) or atomic_frame(step) is not None:
                continue
            work = next(
                (
                    each
                    for each in function.calls
                    if each.index < step.index
                    and atomic_frame(each) is not None
                    and is_write(each)
                    and not exclusive(each, step)
                ),
                None,
            )
            if work is not None:
                yield function.found(
                    step.call,
                    f"the work of line {work.call.lineno} is committed, the marker comes in another transaction: if "
                    f"task {tasks[0].short!r} dies between them, a repeat does the work again",
                )


RULE = Rule(
    code="EO404",
    name="marker-after-work",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="The marker is written in another transaction than the work",
    check=check,
)
