"""EO310: celery-once and celery-singleton need options that they do not ask for."""

import ast
from collections.abc import Iterator

from effectonce.checker.effects import effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import has_guard
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.tasks import Task


def check(survey: Survey) -> Iterator[Found]:
    """Look at the options of unique tasks; what all of them lack is said once."""
    said: set[str] = set()
    for task in survey.tasks:
        for text, is_general in _wrong(task, survey):
            if text not in said:
                yield task.module.found(task.node, f"task {task.short!r}: {text}")
            if is_general:
                said.add(text)


def _wrong(task: Task, survey: Survey) -> Iterator[tuple[str, bool]]:
    if any(name.startswith("effectonce.") for name in task.base_names) or _is_mended(task):
        return
    if any(name.endswith("celery_singleton.Singleton") for name in task.base_names):
        if task.retries:
            yield "celery-singleton takes a retry for a second send and drops it, so the work is lost", False
        if not task.has("lock_expiry") and not survey.configuration.places("singleton_lock_expiry"):
            yield (
                "the lock of celery-singleton has no end without lock_expiry: a killed worker blocks it for ever",
                True,
            )
    if any(name.endswith("QueueOnce") for name in task.base_names) and not _has_timeout(task, survey):
        yield (
            "celery-once keeps the lock of a killed worker for an hour without a timeout, and refuses every send",
            True,
        )

    if any(name.endswith("QueueOnce") for name in task.base_names) and _frees_early(task):
        effect = next((effect for function in survey.bodies(task) for _, effect in effects_of(function)), None)
        if effect is not None and not any(has_guard(each, by_locks=False) for each in survey.bodies(task)):
            yield (
                f"with unlock_before_run a second message runs beside the first, and the task {effect.value} in both",
                False,
            )


def _is_mended(task: Task) -> bool:
    """Tell whether a class of the project between the task and the library has its own way with sends or retries."""
    return any({"apply_async", "on_retry", "delay"} & base.methods.keys() for base in task.bases)


def _frees_early(task: Task) -> bool:
    found = task.expression("once")
    if found is None or not isinstance(found[1], ast.Dict):
        return False
    pairs = zip(found[1].keys, found[1].values, strict=True)
    return any(
        isinstance(key, ast.Constant)
        and key.value == "unlock_before_run"
        and isinstance(value, ast.Constant)
        and value.value is True
        for key, value in pairs
    )


def _has_timeout(task: Task, survey: Survey) -> bool:
    found = task.expression("once")
    if found is not None and isinstance(found[1], ast.Dict):
        keys = {each.value for each in found[1].keys if isinstance(each, ast.Constant)}
        if "timeout" in keys:
            return True
    return any("default_timeout" in module.source.text for module in survey.project.modules)


RULE = Rule(
    code="EO310",
    name="unique-task-misconfigured",
    severity=Severity.WARNING,
    family=Family.LOCKS,
    summary="A unique task of celery-once or celery-singleton lacks an option",
    check=check,
)
