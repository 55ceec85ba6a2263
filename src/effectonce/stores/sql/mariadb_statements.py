"""The ledger's statements where MariaDB has other ones: its locks are those of rows."""

from sqlalchemy import text

from effectonce.stores.sql.dialects import Dialect
from effectonce.stores.sql.statements import CLAIMED, Statements
from effectonce.stores.sql.step_statements import MINE

_HELD = (
    "json_table(:renewals, '$[*]' columns (id char(32) path '$.digest', fenced bigint path '$.fence', "
    "holder char(16) path '$.attempt', ms bigint path '$.lease_ms')) held"
)


class MariaDBStatements(Statements):
    """What the others do with an advisory lock is done with the entry's row."""

    def _add_claiming(self, entries: str, outbox: str, dialect: Dialect) -> None:
        row = f"{entries}{dialect.by_key}"
        super()._add_claiming(entries, outbox, dialect)
        # The row's lock, for the transaction of a body whose claim is committed; primary key. It changes nothing: only
        # the answer to a statement that writes tells the driver that it is in a transaction.
        self.resume = text(f"{dialect.at_once}update {row} set state = {CLAIMED} where {MINE} and state = {CLAIMED}")
        # A lock that a holder's row does not give, be it written or not yet committed; primary key.
        self.lock = text(f"select count(*) + 1 from {entries} where digest = :digest{dialect.shared}")

    def _add_renewing(self, entries: str, dialect: Dialect) -> None:
        clock = dialect.clock
        matched = f"e.fence = held.fenced and e.attempt = unhex(held.holder) and e.state = {CLAIMED}"
        # Row locks; primary key for each row of the list. There is no `update ... returning`, so it is asked.
        self.renew = text(
            f"{dialect.soon}update {_HELD} straight_join {entries} e force index (primary) "
            f"on e.digest = unhex(held.id) "
            f"set e.lease_until = {clock} + held.ms * 1000, e.lease_ms = held.ms "
            f"where {matched} and e.lease_until > {clock}"
        )
        # No lock; primary key for each row of the list.
        self.renewed = text(
            f"select e.attempt from {_HELD} straight_join {entries} e force index (primary) "
            f"on e.digest = unhex(held.id) "
            f"where {matched} and e.lease_until > {clock}"
        )
