"""EO102: a key that is new in each run finds nothing."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.flows import Flow, is_random
from effectonce.checker.keyuses import KeyUse, key_uses
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey

_HOW = {
    "lookup": "is looked up",
    "claim": "is claimed",
    "lock": "names the lock",
    "receiver": "tells the receiver what this is",
}


def check(survey: Survey) -> Iterator[Found]:
    """Follow random values into keys in what tasks run."""
    for function, tasks in survey.reached:
        uses = list(key_uses(function))
        flow = Flow(function, survey, is_random) if uses else None
        for use in uses:
            if flow is not None and flow.carries(use.key) and not _is_token(use):
                yield function.found(
                    use.key,
                    f"this key {_HOW[use.how]}, but task {tasks[0].short!r} makes it up anew in each run, "
                    "so a repeat is never recognised",
                )


def _is_token(use: KeyUse) -> bool:
    return use.column in {"token", "lock_token", "owner"}


RULE = Rule(
    code="EO102",
    name="random-key",
    severity=Severity.ERROR,
    family=Family.KEYS,
    summary="The key of the work is random, so a repeat is never recognised",
    check=check,
)
