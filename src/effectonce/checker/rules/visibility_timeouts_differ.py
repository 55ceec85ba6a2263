"""EO213: the smallest visibility timeout of all processes on one Redis counts for all."""

from collections.abc import Iterator

from effectonce.checker.configuration import Setting
from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Compare the timeouts of apps that share one broker."""
    least: dict[str, tuple[float, Setting]] = {}
    for setting in survey.configuration.places("broker_transport_options"):
        url = survey.configuration.value("broker_url", setting.module)
        options = survey.value(setting.node, setting.module)
        if not isinstance(url, str) or not isinstance(options, dict) or not _has_app(setting):
            continue
        timeout = options.get("visibility_timeout")
        if not isinstance(timeout, int | float):
            continue
        first = least.setdefault(url, (timeout, setting))
        if first[0] != timeout:
            yield setting.module.found(
                setting.place,
                f"another app on {url} ({first[1].module.source.path.name}) has a visibility timeout of "
                f"{first[0]:,.0f} s, this one {timeout:,.0f} s: the smaller one counts for the messages of both",
            )


def _has_app(setting: Setting) -> bool:
    return "Celery(" in setting.module.source.text


RULE = Rule(
    code="EO213",
    name="visibility-timeouts-differ",
    severity=Severity.WARNING,
    family=Family.ACKS,
    summary="Two apps on one broker have different visibility timeouts",
    check=check,
)
