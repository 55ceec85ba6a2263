"""What people and the pruner do with entries of a SQL database."""

from typing import Any

from sqlalchemy import Connection

from effectonce.domain.claims import Entry, Outcome, State
from effectonce.ports import Pruned
from effectonce.stores.sql.looking import Looking
from effectonce.stores.sql.rows import held_values, message_values, micros
from effectonce.stores.sql.statements import flags_of


class Keeping(Looking):
    """What `SqlLedger` lets people and the pruner do."""

    forgets_by_itself = False

    def settle_held(self, entry: Entry, outcome: Outcome, *, by: bytes) -> bool:
        """See `ports.LedgerStore.settle_held`."""
        changes = {
            "state": int(outcome.state),
            "flags": flags_of(continued=outcome.continued, handed_over=outcome.handed_over, kept=outcome.kept),
            "result": outcome.result,
            "keep_us": micros(outcome.keep),
        }
        return self._changed(entry, self.statements.keeping.settle, by=by, **changes)

    def free(self, entry: Entry, *, by: bytes, keep: float | None) -> bool:
        """See `ports.LedgerStore.free`."""
        statements = self.statements.keeping
        is_held = entry.state in {State.UNKNOWN, State.POISONED}
        steps = statements.forget_open_steps if is_held else statements.forget_steps
        return self._changed(entry, statements.free, then=steps, by=by, keep_us=micros(keep))

    def redact(self, entry: Entry) -> bool:
        """See `ports.LedgerStore.redact`."""
        statements = self.statements.keeping
        return self._changed(entry, statements.redact, then=statements.forget_steps, nothing=b"")

    def unhold(self, digest: bytes, message: bytes) -> None:
        """See `ports.LedgerStore.unhold`."""
        values = message_values(digest, message)
        self._settled(lambda connection: connection.execute(self.statements.keeping.unhold, values).rowcount)

    def prune(self, *, limit: int, after: bytes) -> Pruned:
        """See `ports.LedgerStore.prune`."""
        statements = self.statements.keeping

        def prune(connection: Connection) -> Pruned:
            end, last = self.page_on(connection, limit, after)
            values = {"after": after, "last": last}
            removed = connection.execute(statements.prune, values).rowcount
            connection.execute(statements.prune_steps, values)
            return Pruned(looked=limit, removed=removed, after=end)

        return self._settled(prune)

    def over(self, *, limit: int, after: bytes) -> Pruned:
        """See `ports.LedgerStore.over`."""
        statements = self.statements.keeping

        def look(connection: Connection) -> Pruned:
            end, last = self.page_on(connection, limit, after)
            number = connection.execute(statements.over, {"after": after, "last": last}).scalar()
            return Pruned(looked=limit, removed=number or 0, after=end)

        return self._looked(look)

    def _changed(self, entry: Entry, statement: Any, *, then: Any = None, **changes: Any) -> bool:
        values = {**held_values(entry), "seen": int(entry.state), **changes}

        def change(connection: Connection) -> bool:
            if connection.execute(statement, values).rowcount != 1:
                return False
            if then is not None:
                connection.execute(then, {"digest": entry.digest})
            return True

        return self._settled(change)
