"""Finding out how a commit ended whose answer was lost (rule 10)."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from effectonce.domain.claims import Claim, State
from effectonce.errors import CommitUncertain, LedgerUnavailable
from effectonce.ports import Conflict

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

ASK_FOR = 10.0
"""Seconds that an uncertain commit is asked about before it stays uncertain."""


def ask_how_it_ended(ledger: "SqlLedger", claim: Claim, state: State) -> None:
    """Return if the entry says that this attempt has ended so; the server may still be committing.

    Raises LedgerUnavailable where nothing was committed, CommitUncertain where that cannot be told in time.
    """
    end, pause = time.monotonic() + ASK_FOR, 0.05
    while time.monotonic() < end:
        with suppress(LedgerUnavailable, Conflict):
            ended = ledger.has_ended(claim.digest, claim.attempt, state)
            if ended is True:
                return
            if ended is False:
                break
        time.sleep(pause)
        pause = min(pause * 2, 1.0)
    else:
        raise CommitUncertain(key=claim.key)
    reason = "the connection broke at the commit, and nothing was committed"
    raise LedgerUnavailable(ledger=ledger.name, reason=reason)
