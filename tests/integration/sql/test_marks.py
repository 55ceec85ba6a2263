"""What it costs to note that ticks were sent."""

import secrets
from typing import Any

import sqlalchemy as sa

from effectonce.domain.ticks import Tick, TickClaim, TickState
from effectonce.stores.sql.ledger import SqlLedger


def test_a_batch_of_ticks_is_marked_by_one_message_to_the_database(sqlite_url: str) -> None:
    """One commit for each tick made a leader of many entries late."""
    ledger = SqlLedger.open(sqlite_url)
    schedule = ledger.schedule
    term = schedule.win("beat", holder=secrets.token_bytes(16), who="here", length=60)
    assert term is not None
    ticks = [Tick(group="beat", name=f"e{number}", instant=10) for number in range(20)]
    schedule.claim_ticks(term, [TickClaim(tick=tick, state=TickState.CLAIMED) for tick in ticks])
    updates: list[bool] = []

    @sa.event.listens_for(ledger.source.engine, "before_cursor_execute")
    def notice(_connection: Any, _cursor: Any, statement: str, _values: Any, _context: Any, many: bool) -> None:
        if "update" in statement:
            updates.append(many)

    schedule.mark_ticks(ticks)
    assert updates == [True]
    assert schedule.unmarked("beat") == []
    ledger.close()
