"""What `SqlLedger` lets people do with its tables."""

from collections.abc import Sequence

from effectonce.errors import LedgerUnsuitable
from effectonce.stores.sql import migrations
from effectonce.stores.sql.migrations import Phase
from effectonce.stores.sql.transactions import SETTLE_WAIT, ShortTransactions


class Upgrading(ShortTransactions):
    """The part of the SQL ledger that changes its schema."""

    def upgrade_schema(self, *, phase: Phase) -> Sequence[str]:
        """Make the steps that are missing and answer their names; see `migrations.upgrade`."""
        self._may_change()
        with self._unchecked_transaction(wait=SETTLE_WAIT) as connection:
            return migrations.upgrade(connection, self._tables, self.dialect, phase=phase)

    def missing_steps(self, *, phase: Phase) -> Sequence[str]:
        """The names of the steps that `upgrade_schema` would make now; nothing is changed."""
        self._may_change()
        with self._reading() as connection:
            return migrations.missing(connection, self._tables, phase=phase)

    def check_schema(self) -> Sequence[str]:
        """What is not as this release expects it, in words; empty when all is."""
        with self._reading() as connection:
            found = migrations.differences(connection, self._tables)
            if found or not self._changes_itself:
                return found
            return [
                f"a step was not made: {step}" for step in migrations.missing(connection, self._tables, phase="post")
            ]

    def schema_sql(self) -> Sequence[str]:
        """The statements that make the tables; asks nobody."""
        return list(migrations.sql(self._tables, self.source.engine.dialect))

    _changes_itself = True
    """Whether its tables are changed by our steps, and not by a framework's."""

    def _may_change(self) -> None:
        if not self._changes_itself:
            facts = {"ledger": self.name, "policy": "schema upgrade", "task": ""}
            raise LedgerUnsuitable(**facts, reason="its tables are the framework's: manage.py migrate effectonce")
