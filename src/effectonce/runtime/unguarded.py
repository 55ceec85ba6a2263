"""An attempt that guards nothing: the mode ``off``, and a unit test that has no store.

Nothing is claimed and nothing is written. The face of the body keeps working: a session is opened when the body first
asks for one, and what it left open commits when the body returns, and is rolled back when it raises. A crash leaves
what the body left.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from effectonce.domain.claims import Granted
from effectonce.domain.sightings import Would
from effectonce.runtime.plan import Plan

Opening = Callable[[], AbstractContextManager[Any]]


class UnguardedAttempt:
    """One attempt that nobody knows of; it has the face of the others, and every ending is already reached.

    *opening* opens a session for the body. *at_once*: before it begins, since it writes through one of its own whose
    commit it leaves to us.
    """

    granted: Granted | None = None

    def __init__(self, plan: Plan, opening: Opening, *, at_once: bool = False) -> None:
        self._plan = plan
        self._opening = opening
        self._at_once = at_once
        self._open = ExitStack()
        self._session: Any = None
        self.result: Any = None
        self.is_done = False

    @property
    def committed(self) -> Granted | None:
        """No claim is shown to a retry: it takes its turn like any other message."""
        return None

    @property
    def fence(self) -> int:
        """The fence of what was recorded; 0 where nothing is."""
        return self.granted.fence if self.granted else 0

    @property
    def session(self) -> Any:
        """The body's session, opened now if it was not; raises what opening it raises."""
        if self._session is None:
            self._session = self._open.enter_context(self._opening())
        return self._session

    @property
    def connection(self) -> Any:
        """The connection of that session."""
        return self.session.connection()

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction of the ledger's database that commits whoever holds the effect."""
        return self._opening()

    def step(self, call: Callable[[], Any]) -> Any:
        """Carry a step out; it is not written down."""
        return call()

    def run(self, body: Callable[[], Any]) -> Any:
        """Run *body* and commit what it left open; what it raises passes, with all that rolled back."""
        try:
            if self._at_once:
                _ = self.session
            result = body()
        except BaseException:
            self._open.__exit__(*sys.exc_info())
            raise
        self._open.close()
        self.result, self.is_done = result, True
        return result

    def ensure_current(self) -> None:
        """Return: nobody can say that another attempt holds the effect."""

    def saw(self, seen: Would, *, again: bool) -> None:
        """Nothing is counted."""

    def ignored(self) -> None:
        """Nothing is held."""

    def retried(self) -> None:
        """Nothing is held."""

    def raised(self, error: Exception) -> None:
        """The body failed; nothing is held."""

    def failed(self) -> None:
        """Nothing is held."""

    def abandoned(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing is held."""
