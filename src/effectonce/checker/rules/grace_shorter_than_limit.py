"""EO704: a worker that is killed before its tasks have ended leaves half of the work."""

from collections.abc import Iterator
from typing import Final

from effectonce.checker.deployment import compose, kubernetes
from effectonce.checker.deployment.places import Deployment, Format, Process
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.numbers import seconds
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_DEFAULTS: Final = {
    Format.COMPOSE: compose.DEFAULT_GRACE,
    Format.KUBERNETES: kubernetes.DEFAULT_GRACE,
    Format.SUPERVISOR: 10.0,
    Format.SYSTEMD: 90.0,
}


def check(survey: Survey) -> Iterator[Found]:
    """Compare the time that a worker is given to stop with the longest limit of the tasks."""
    limits = [limit for task in survey.tasks if (limit := task.time_limit) is not None]
    shared = seconds(survey.configuration.value("task_time_limit"))
    longest = max([*limits, *([shared] if shared is not None else [])], default=None)
    if longest is None or survey.configuration.value("worker_soft_shutdown_timeout"):
        return
    for deployment, process in survey.processes:
        if process.verb == "worker" and not deployment.is_for_development:
            yield from _compared(deployment, process, longest)


def _compared(deployment: Deployment, process: Process, longest: float) -> Iterator[Found]:
    default = _DEFAULTS.get(deployment.format)
    grace = process.grace.value if process.grace is not None else default
    if not isinstance(grace, float) or grace >= longest:
        return
    row = process.grace.row if process.grace is not None else process.row
    said = "" if process.grace is not None else " (the default)"
    yield deployment.found(
        row,
        f"worker {process.name!r} is killed {grace:,.0f} s{said} after it was told to stop, and a task may run "
        f"{longest:,.0f} s: its work is cut off, and lost or run again",
    )


RULE = Rule(
    code="EO704",
    name="grace-shorter-than-limit",
    severity=Severity.ADVICE,
    family=Family.DEPLOYMENT,
    summary="A worker is killed before its tasks have to end",
    check=check,
)
