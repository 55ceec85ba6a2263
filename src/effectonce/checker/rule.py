"""A rule: a code that never changes its meaning, and a question to the survey."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from effectonce.checker.findings import Family, Finding, Found, Severity
from effectonce.checker.survey import Survey


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One mistake that can be found; its page in the reference explains it."""

    code: str
    name: str
    severity: Severity
    family: Family
    summary: str
    check: Callable[[Survey], Iterator[Found]]

    @property
    def url(self) -> str:
        """Where its page is."""
        return f"https://effectonce.readthedocs.io/reference/rules/{self.code}"

    def finding(self, found: Found, line: str) -> Finding:
        """Sign what the rule found."""
        return Finding(
            code=self.code,
            name=self.name,
            severity=self.severity,
            path=found.path,
            span=found.span,
            message=found.message,
            line=line,
        )
