"""EO702: a beat inside of a worker is one beat a worker."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.leaders import has_leader
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for workers with `-B` in what is deployed."""
    for deployment, process in survey.processes:
        if not process.embeds_beat or deployment.is_for_development or has_leader(process, survey):
            continue
        count = process.replicas.value if process.replicas is not None else None
        many = (
            f"it runs in {count:.0f} replicas, so" if isinstance(count, float) and count > 1 else "once it is scaled,"
        )
        yield deployment.found(
            process.row, f"worker {process.name!r} has a beat inside: {many} each worker sends every periodic task"
        )


RULE = Rule(
    code="EO702",
    name="embedded-beat",
    severity=Severity.ERROR,
    family=Family.DEPLOYMENT,
    summary="A worker has a beat inside",
    check=check,
)
