"""EO209: Celery's own deduplication asks the result backend, and only for what has ended."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look at the setting and at what it needs."""
    for setting in survey.configuration.places("worker_deduplicate_successful_tasks"):
        module = setting.module
        if survey.value(setting.node, module) is not True:
            continue
        configuration = survey.configuration
        if configuration.value("task_ignore_result", module) is True:
            why = "results are ignored, so it finds nothing"
        elif not configuration.places("result_backend", module):
            why = "there is no result backend, so it finds nothing"
        elif configuration.value("task_acks_late", module) is not True and not any(
            task.is_late for task in survey.tasks
        ):
            why = "no task is acknowledged late, so it is never asked"
        else:
            why = "it only knows runs that have ended, and a copy that starts meanwhile runs beside the first"
        yield module.found(setting.place, f"worker_deduplicate_successful_tasks does not keep repeats away: {why}")


RULE = Rule(
    code="EO209",
    name="deduplication-by-celery",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="worker_deduplicate_successful_tasks is taken for a guard",
    check=check,
)
