"""Where a demo happens: the addresses that its processes share, handed to workers in one variable."""

import json
import os
from dataclasses import asdict, dataclass
from typing import Final, Self

VARIABLE: Final = "EFFECTONCE_DEMO"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Addresses and names of one run. *name* is in all that the run leaves in servers that are not its own.

    *plain* is the database of the plain task: where one database can have one writer only, it is another one than the
    guarded task's, so that neither task waits for the other. *schema* is the database schema of the run, if any.
    """

    name: str
    broker: str
    results: str
    ledger: str
    plain: str
    schema: str | None
    journal: str

    def environment(self) -> dict[str, str]:
        """Return what a worker's environment needs. It may hold passwords, so it is never printed."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> Self:
        """Read what `environment` wrote; raises RuntimeError in a process that no demo has started."""
        text = os.environ.get(VARIABLE)
        if text is None:
            message = "effectonce.lab.demo_app is the app of `effectonce demo`, which starts its workers itself"
            raise RuntimeError(message)
        return cls(**json.loads(text))
