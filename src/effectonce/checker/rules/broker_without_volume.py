"""EO706: a broker without a volume forgets its messages, and what was acknowledged."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for a Redis or a RabbitMQ beside Celery that keeps nothing."""
    for deployment in survey.deployments:
        if deployment.is_for_development or not any(each.verb in {"worker", "beat"} for each in deployment.processes):
            continue
        for broker in deployment.brokers:
            if not broker.is_kept:
                yield deployment.found(
                    broker.row,
                    f"{broker.name!r} has no volume: when its container or pod is removed, every message that waits is "
                    "lost",
                )


RULE = Rule(
    code="EO706",
    name="broker-without-volume",
    severity=Severity.WARNING,
    family=Family.DEPLOYMENT,
    summary="The broker has no persistent volume",
    check=check,
)
