"""The statements of those who look after entries: people who settle what is held, and the pruner."""

from sqlalchemy import text

from effectonce.domain.claims import State
from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.step_statements import MINE
from effectonce.stores.sql.tables import NOT_KEPT

HELD = f"{State.UNKNOWN:d}, {State.POISONED:d}"
ENDED = f"{State.COMPLETED:d}, {State.FAILED:d}"


class KeepingStatements:
    """The statements for one dialect and one schema."""

    def __init__(self, entries: str, held: str, steps: str, outbox: str, dialect: Dialect) -> None:
        clock = dialect.clock
        seen = f"{MINE} and state = :seen"
        taken = f"fence = case when fence + 1 > {clock} then fence + 1 else {clock} end, attempt = :by"
        # The row's lock; primary key.
        self.settle = text(
            f"{dialect.soon}update {entries} set {taken}, state = :state, flags = :flags, "
            f"result = :result, since = {clock}, keep_until = {clock} + :keep_us where {seen} and state in ({HELD})"
        )
        # The row's lock; primary key.
        self.free = text(
            f"{dialect.soon}update {entries} set {taken}, state = {State.RELEASED:d}, flags = 0, deaths = 0, "
            f"retries = 0, result = null, since = {clock}, keep_until = {clock} + :keep_us "
            f"where {seen} and state in ({HELD}, {ENDED})"
        )
        # The row's lock; primary key.
        self.redact = text(
            f"{dialect.soon}update {entries} set {dialect.key} = '', fingerprint = :nothing, "
            f"result = null, flags = flags | {NOT_KEPT} "
            f"where {seen} and state in ({ENDED})"
        )
        # Under the entry's lock; primary key.
        self.forget_steps = text(f"delete from {steps} where digest = :digest")
        self.forget_open_steps = text(f"delete from {steps} where digest = :digest and ended is null")
        # No lock of the entry; the index of held messages.
        self.unhold = text(f"delete from {held} where digest = :digest and mark = :mark")
        # No lock; primary key alone.
        self.page_end = text(f"select digest from {entries} where digest > :after order by digest limit 1 offset :skip")
        over = (
            f"from {entries} where digest > :after and digest <= :last and keep_until < {dialect.moment} "
            f"and state in ({ENDED}, {State.RELEASED:d}) "
            f"and not exists (select 1 from {held} h where h.digest = {entries}.digest) "
            f"and not exists (select 1 from {outbox} o where o.effect = {entries}.digest)"
        )
        # Row locks of what goes; a range of the primary key, and the indexes of messages.
        self.prune = text(f"delete {over}")
        # No lock; the same.
        self.over = text(f"select count(*) {over}")
        # Row locks of what goes; a range of the primary key, and the entries' primary key.
        self.prune_steps = text(
            f"delete from {steps} where digest > :after and digest <= :last "
            f"and not exists (select 1 from {entries} e where e.digest = {steps}.digest)"
        )
