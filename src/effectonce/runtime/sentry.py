"""The sentry: watches whether the ledger answers, so that a worker without one stops taking messages (rule 9).

Deferring each message while the ledger is away is right, and wasteful: every worker would copy the whole queue round
and round. After a few silent looks the worker stops consuming and keeps what it holds; one answer starts it again.
Where an app has several ledgers, one that is away is no reason to stop: the effects of the others go on.
"""

from collections.abc import Callable, Sequence

from effectonce.errors import LedgerUnavailable
from effectonce.events import Emit, Event, Name
from effectonce.ports import LedgerStore

PATIENCE = 2
"""Looks without an answer before consuming stops."""


class Sentry:
    """Asks the ledger and tells the worker to pause or go on. *pause* and *resume* must be safe to call again.

    *stores*: groups of them. A group of which none answers keeps the worker from working.
    """

    def __init__(
        self,
        stores: Callable[[], Sequence[Sequence[LedgerStore]]],
        *,
        pause: Callable[[], None],
        resume: Callable[[], None],
        emit: Emit,
    ) -> None:
        self._stores = stores
        self._pause = pause
        self._resume = resume
        self._emit = emit
        self._silent = 0

    @property
    def is_paused(self) -> bool:
        """Whether the worker was told to stop consuming."""
        return self._silent >= PATIENCE

    def look(self) -> None:
        """Ask once; pause at the second silence in a row, resume at the first answer after it."""
        try:
            for group in self._stores():
                _ping_any(group)
        except LedgerUnavailable as error:
            self._silent += 1
            if self._silent == PATIENCE:
                self._emit(Event(name=Name.LEDGER_LOST, facts={"ledger": error.facts.get("ledger"), "why": error.code}))
            if self.is_paused:
                self._pause()
            return
        if self.is_paused:
            self._emit(Event(name=Name.LEDGER_FOUND))
            self._resume()
        self._silent = 0


def _ping_any(group: Sequence[LedgerStore]) -> None:
    """Return when one of them answers; raises what the first one said when none does."""
    away: LedgerUnavailable | None = None
    for store in group:
        try:
            store.ping()
        except LedgerUnavailable as error:
            away = away or error
        else:
            return
    if away is not None:
        raise away
