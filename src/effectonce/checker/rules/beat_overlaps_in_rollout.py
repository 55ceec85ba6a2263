"""EO703: a rolling update starts the new beat before it stops the old one."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.leaders import has_leader
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for Deployments of a beat that are not recreated."""
    for deployment, process in survey.processes:
        if process.kind != "Deployment" or process.verb != "beat" or has_leader(process, survey):
            continue
        strategy = process.strategy.value if process.strategy is not None else "RollingUpdate"
        if strategy not in {"Recreate", "templated"}:
            row = process.strategy.row if process.strategy is not None else process.row
            yield deployment.found(
                row,
                f"beat {process.name!r} is updated by starting the new one before the old one is gone: two beats send, "
                "for as long as that takes; use strategy Recreate",
            )


RULE = Rule(
    code="EO703",
    name="beat-overlaps-in-rollout",
    severity=Severity.WARNING,
    family=Family.DEPLOYMENT,
    summary="Two beats run while a new version is rolled out",
    check=check,
)
