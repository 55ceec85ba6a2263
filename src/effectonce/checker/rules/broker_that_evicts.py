"""EO707: a Redis that is full throws away messages, locks and markers like any other key."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for policies of eviction in a Redis beside Celery."""
    for deployment in survey.deployments:
        if not any(each.verb in {"worker", "beat"} for each in deployment.processes):
            continue
        redis = [broker for broker in deployment.brokers if broker.kind == "redis"]
        for broker in redis:
            policy = broker.eviction.value if broker.eviction is not None else None
            if (
                broker.eviction is not None
                and isinstance(policy, str)
                and policy.startswith("allkeys")
                and len(redis) == 1
            ):
                yield deployment.found(
                    broker.eviction.row,
                    f"with maxmemory-policy {policy} {broker.name!r} throws away any key when it is full: messages "
                    "that wait, locks and markers too",
                )


RULE = Rule(
    code="EO707",
    name="broker-that-evicts",
    severity=Severity.ERROR,
    family=Family.DEPLOYMENT,
    summary="The broker throws keys away when it is full",
    check=check,
)
