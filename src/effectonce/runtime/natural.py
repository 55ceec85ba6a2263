"""An attempt that asks nobody: its body is idempotent by meaning.

Nothing is claimed and nothing is written, so nothing can be away and nobody can be fenced. What a crash leaves is what
the body left; the message comes again, and the next attempt ends in the same state.
"""

from collections.abc import Callable
from typing import Any

from effectonce import crashpoints
from effectonce.domain.claims import Granted
from effectonce.runtime.plan import Plan


class NaturalAttempt:
    """One attempt at a `Natural` effect; it has the face of the others, and every ending is already reached."""

    granted: Granted | None = None
    committed: Granted | None = None
    fence = 0

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.result: Any = None
        self.is_done = False

    def run(self, body: Callable[[], Any]) -> Any:
        """Run *body*; what it raises passes."""
        crashpoints.crash_point("body.before")
        result = body()
        crashpoints.crash_point("body.after")
        self.result, self.is_done = result, True
        return result

    def ensure_current(self) -> None:
        """Return: two attempts at once are harmless, or the body is not idempotent by meaning."""

    def ignored(self) -> None:
        """Nothing was claimed."""

    def retried(self) -> None:
        """Nothing was claimed."""

    def failed(self) -> None:
        """Nothing was claimed."""

    def abandoned(self) -> None:
        """Nothing was claimed."""

    def close(self) -> None:
        """Nothing is held."""
