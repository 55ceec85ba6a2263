"""EO311: a marker that ends before the last repeat may come."""

import ast
from collections.abc import Iterator
from typing import Final

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.locks import locks_of
from effectonce.checker.markers import claims_key, marks_key
from effectonce.checker.numbers import seconds
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task

RETRY_DELAY: Final = 180.0
RETRIES: Final = 3.0


def check(survey: Survey) -> Iterator[Found]:
    """Compare the life of markers with the time in which a message may come again."""
    for function, tasks in survey.reached:
        for lock in locks_of(function, survey):
            if not isinstance(lock.ttl, float) or not claims_key(lock.step):
                continue
            text = ast.unparse(lock.key)
            if isinstance(lock.key, ast.Name):
                text += " ".join(ast.unparse(value) for value in function.assigned.get(lock.key.id, []))
            if not marks_key(lock.step, text):
                continue
            horizon = max(_horizon(task, survey) for task in tasks)
            if lock.ttl < horizon and not any(task.is_guarded for task in tasks):
                yield function.found(
                    lock.step.call,
                    f"this marker ends after {lock.ttl:,.0f} s, but a message of task {tasks[0].short!r} may come "
                    f"again after {horizon:,.0f} s, and then nothing is known of the first run",
                )


def _horizon(task: Task, survey: Survey) -> float:
    """After how many seconds a message may come again: by the broker, or as a retry."""
    visibility = survey.configuration.visibility(task.module) or 0.0
    if not task.retries:
        return visibility
    delay = seconds(task.option("default_retry_delay"))
    tries = seconds(task.option("max_retries"))
    return max(visibility, (RETRY_DELAY if delay is None else delay) * (RETRIES if tries is None else tries))


RULE = Rule(
    code="EO311",
    name="guard-may-vanish",
    severity=Severity.WARNING,
    family=Family.LOCKS,
    summary="A marker ends before the last repeat may come",
    check=check,
)
