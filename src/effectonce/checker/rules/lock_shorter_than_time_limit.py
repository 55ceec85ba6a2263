"""EO301: a lock that ends before the work does lets the next one in."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.locks import Lock, locks_of, renews
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task

LONG_ENOUGH = 3600.0


def check(survey: Survey) -> Iterator[Found]:
    """Compare the life of each lock with the limits of the tasks that take it."""
    for function, tasks in survey.reached:
        for lock in locks_of(function, survey):
            for task in tasks:
                message = _wrong(lock, task, survey, is_its_own=function is task.function)
                if message is not None:
                    yield function.found(lock.step.call, message)
                    break


def _wrong(lock: Lock, task: Task, survey: Survey, *, is_its_own: bool) -> str | None:
    if not isinstance(lock.ttl, float) or task.is_guarded or task.has_unknown_limit or renews(survey.bodies(task)):
        return None
    limit = task.time_limit
    if limit is None:
        if lock.ttl >= LONG_ENOUGH or not is_its_own:  # a lock of a function around a part of the run
            return None
        return (
            f"the lock lives {lock.ttl:,.0f} s, but task {task.short!r} has no time limit: "
            "when it runs longer, a second one runs beside it"
        )
    if lock.ttl < limit:
        return (
            f"the lock lives {lock.ttl:,.0f} s, but task {task.short!r} may run {limit:,.0f} s: "
            "after the lock has ended a second one runs beside it"
        )
    return None


RULE = Rule(
    code="EO301",
    name="lock-shorter-than-time-limit",
    severity=Severity.WARNING,
    family=Family.LOCKS,
    summary="The lock ends before the task has to",
    check=check,
)
