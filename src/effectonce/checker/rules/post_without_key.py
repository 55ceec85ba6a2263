"""EO108: a request that is repeated without a key is a second request."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from effectonce.checker.effects import Effect, effects_of
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.guards import is_answered, is_claim
from effectonce.checker.module import Function
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey
from effectonce.checker.walk import Step

_HARMLESS: Final = re.compile(
    r"search|graphql|token|oauth|auth|login|query|hook|slack|discord|telegram|metric|telemetry|log|localhost|purge|"
    r"index|cache|ping|status|analy|track|report|lookup|verify|validate|translat|embed|complet",
    re.IGNORECASE,
)


def check(survey: Survey) -> Iterator[Found]:
    """Look for requests in tasks that are repeated by themselves."""
    for function, tasks in survey.reached:
        repeated = [task for task in tasks if (task.retries or task.is_late) and not is_answered(task, survey)]
        if not repeated:
            continue
        for step, effect in effects_of(function):
            if effect not in {Effect.POST, Effect.PAYMENT} or is_claim(step) or _has_reference(step):
                continue
            if effect is Effect.POST and _is_harmless(step, function):
                continue
            yield function.found(
                step.call,
                f"task {repeated[0].short!r} is run again after a failure, and this request names no key by which the "
                "other side could recognise it",
            )


def _has_reference(step: Step) -> bool:
    names = {each.arg for each in step.call.keywords if each.arg}
    return bool(names & {"reference", "client_reference_id", "request_id", "merchant_reference", "external_id"})


def _is_harmless(step: Step, function: Function) -> bool:
    text = " ".join([function.qualname, *(ast.unparse(each) for each in step.call.args[:1])])
    return _HARMLESS.search(text) is not None


RULE = Rule(
    code="EO108",
    name="post-without-key",
    severity=Severity.WARNING,
    family=Family.KEYS,
    summary="A request of a task that is repeated names no key",
    check=check,
)
