"""What the processes of one trial share, handed over in one variable."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

VARIABLE: Final = "EFFECTONCE_LAB"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Addresses and names of one trial.

    *locks* is a Redis for contenders that need one, *ledger* the database of the guard and of the effects, in *schema*
    if it has schemas. *settings* come on top of the contender's own, *fault* is where a process dies (`faults`),
    *skew* the seconds by which its clock is ahead, *edition* which code of the tasks runs.
    """

    name: str
    contender: str
    broker: str
    results: str
    locks: str
    ledger: str
    schema: str | None
    diary: str
    visibility: float = 3600.0
    lease: float = 4.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    task_options: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""
    skew: float = 0.0
    edition: int = 1

    def environment(self, **changes: Any) -> dict[str, str]:
        """Return what a process's environment needs. It may hold passwords, so it is never printed."""
        return {VARIABLE: json.dumps(asdict(replace(self, **changes)))}

    @classmethod
    def from_environment(cls) -> Self:
        """Read what `environment` wrote; raises RuntimeError in a process that no trial has started."""
        text = os.environ.get(VARIABLE)
        if text is None:
            message = "this is the app of `effectonce lab`, which starts its workers itself"
            raise RuntimeError(message)
        return cls(**json.loads(text))
