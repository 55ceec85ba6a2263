"""EO211: the broker does not read the options of the result backend."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Look for a visibility timeout that only the result backend is told."""
    for setting in survey.configuration.places("result_backend_transport_options"):
        options = survey.value(setting.node, setting.module)
        if not isinstance(options, dict) or "visibility_timeout" not in options:
            continue
        if survey.configuration.transport_option("visibility_timeout", setting.module) is None:
            yield setting.module.found(
                setting.place,
                "the broker reads visibility_timeout from broker_transport_options only; set here it changes nothing",
            )


RULE = Rule(
    code="EO211",
    name="visibility-in-result-options",
    severity=Severity.ERROR,
    family=Family.ACKS,
    summary="visibility_timeout is set where the broker does not read it",
    check=check,
)
