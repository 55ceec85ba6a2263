"""The statements about steps, by name: each locks the entry's row, so that whoever takes the effect over waits for it.

A start or an end is written under a shared lock of the entry's row, on condition of the fence. A takeover changes that
row: so it either comes after the commit and sees the step, or comes first and the step is refused.
"""

from sqlalchemy import text

from effectonce.domain.claims import State
from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.tables import STEP_NOT_KEPT, STEP_SKIPPED

MINE = "digest = :digest and fence = :fence and attempt = :attempt"
STEP_COLUMNS = "digest, name, attempt, fence, began, ended, flags, result"


class StepStatements:
    """The statements about steps for one dialect and one schema."""

    def __init__(self, entries: str, steps: str, dialect: Dialect) -> None:
        clock = dialect.clock
        mine = f"{dialect.soon}select 1 from {entries} where {MINE} and state = {State.CLAIMED:d} {dialect.share}"
        # The entry's row, shared; its primary key.
        self.mine = text(mine)
        # The same, and the step's row; primary keys. No row when fenced, or when this attempt has begun it before.
        self.begin = text(
            f"{dialect.soon}insert into {steps} (digest, mark, name, attempt, fence, began, flags) "
            f"select :digest, :mark, :name, :attempt, :fence, {clock}, :flags from {entries} "
            f"where {MINE} and state = {State.CLAIMED:d} and not exists (select 1 from {steps} s "
            f"where s.digest = :digest and s.mark = :mark) {dialect.share}"
        )
        # The step's row, under the entry's; primary key.
        self.restart = text(
            f"update {steps} set attempt = :attempt, fence = :fence, began = {clock}, flags = :flags "
            "where digest = :digest and mark = :mark and ended is null and attempt <> :attempt"
        )
        # The step's row, under the entry's; primary key.
        self.end = text(
            f"update {steps} set ended = {clock}, result = :result, flags = flags | :flags "
            "where digest = :digest and mark = :mark and ended is null"
        )
        # The step's row, under the entry's; primary key.
        self.cancel = text(f"delete from {steps} where digest = :digest and mark = :mark")
        # No lock; primary key.
        # SQLite's clock counts milliseconds, and two steps may begin in one.
        next_to_it = "rowid" if dialect.name == "sqlite" else "mark"
        self.all = text(f"select {STEP_COLUMNS} from {steps} where digest = :digest order by began, {next_to_it}")


def end_flags(*, kept: bool, skipped: bool) -> int:
    """Pack what is true of an end."""
    return (0 if kept else STEP_NOT_KEPT) | (STEP_SKIPPED if skipped else 0)
