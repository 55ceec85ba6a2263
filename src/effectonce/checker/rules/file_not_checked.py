"""EO901: a file could not be read or parsed, so nothing is known of it."""

from collections.abc import Iterator

from effectonce.checker.findings import Family, Found, Severity
from effectonce.checker.rule import Rule
from effectonce.checker.survey import Survey


def check(survey: Survey) -> Iterator[Found]:
    """Report each file that was left out."""
    yield from survey.project.files_broken()
    yield from survey.unread


RULE = Rule(
    code="EO901",
    name="file-not-checked",
    severity=Severity.ERROR,
    family=Family.FILES,
    summary="The file could not be read or parsed, so it was not checked",
    check=check,
)
