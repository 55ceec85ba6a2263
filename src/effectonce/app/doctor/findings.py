"""What the doctor finds: a fact about this system that can duplicate or lose work, and the setting that mends it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from effectonce.app.doctor.patient import Patient

_PAGE: Final = "docs/reference/doctor/{code}.md"


class Severity(IntEnum):
    """How bad it is; the numbers are an order."""

    INFO = 1
    """Something could not be asked."""

    WARNING = 2
    """Work may be duplicated or lost when something else goes wrong too."""

    ERROR = 3
    """Work is duplicated, lost or held, or will be."""


Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One question to the running system. *look* gives the facts of each fault it finds; none is well."""

    code: str
    severity: Severity
    title: str
    setting: str
    look: "Callable[[Patient], Iterable[Facts]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault. *setting* says what to change; *page* is the documentation's."""

    code: str
    severity: Severity
    title: str
    setting: str
    facts: Facts = field(default_factory=dict)

    @property
    def page(self) -> str:
        """Where it is explained."""
        return _PAGE.format(code=self.code)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "code": self.code,
            "severity": self.severity.name.lower(),
            "title": self.title,
            "facts": {name: _plain(value) for name, value in self.facts.items()},
            "setting": self.setting,
            "page": self.page,
        }


def _plain(value: Any) -> Any:
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    return str(value)
