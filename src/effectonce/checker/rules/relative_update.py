"""EO408: adding a second time changes the sum; setting a second time changes nothing."""

from collections.abc import Iterator

from effectonce.checker.additions import additions
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import has_guard
from effectonce.checker.names import words
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_COUNTERS = {
    "count",
    "counter",
    "counts",
    "views",
    "hits",
    "retries",
    "retry",
    "attempts",
    "attempt",
    "tries",
    "failures",
    "errors",
    "version",
    "position",
    "index",
    "offset",
    "progress",
    "stats",
    "revision",
    "sequence",
    "num",
    "number",
    "generation",
    "page",
    "step",
}


def check(survey: Survey) -> Iterator[Found]:
    """Look for additions to stored values in tasks that never ask whether they added before."""
    for function, tasks in survey.reached:
        if all(task.is_guarded for task in tasks) or has_guard(function) or any(has_guard(t.function) for t in tasks):
            continue
        for step, column in additions(function):
            if not words(column) & _COUNTERS:
                yield function.found(
                    step.node,
                    f"task {tasks[0].short!r} adds to {column!r} instead of setting it: "
                    "each repeat of the message adds again",
                )


RULE = Rule(
    code="EO408",
    name="relative-update",
    severity=Severity.WARNING,
    family=Family.DATABASE,
    summary="A task adds to a stored value instead of setting it",
    check=check,
)
