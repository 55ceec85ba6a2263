"""Steps in a SQL database: each start and each end is a short transaction of its own, under the entry's lock."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from effectonce.domain.claims import Granted
from effectonce.domain.steps import End, Step
from effectonce.errors import CommitUncertain, FenceRefused
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.rows import held_values, storable
from effectonce.stores.sql.step_statements import end_flags
from effectonce.stores.sql.tables import STEP_HOLDS, STEP_NOT_KEPT, STEP_SKIPPED
from effectonce.stores.sql.transactions import SETTLE_WAIT, ShortTransactions

T = TypeVar("T")


class StepRecords(ShortTransactions):
    """What `SqlLedger` does with steps."""

    def begin_step(self, granted: Granted, name: str, *, holds: bool) -> bool:
        """See `ports.LedgerStore.begin_step`; one statement, two more where a start stands already."""
        values = {**_values(granted, name), "name": storable(name), "flags": STEP_HOLDS if holds else 0}
        statements = self.statements.steps

        def begin(connection: Connection) -> bool:
            if connection.execute(statements.begin, values).rowcount == 1:
                return True
            if connection.execute(statements.mine, values).first() is None:
                return False
            connection.execute(statements.restart, values)
            return True

        return self._settled(begin)

    def end_step(self, granted: Granted, name: str, end: End) -> bool:
        """See `ports.LedgerStore.end_step`."""
        flags = end_flags(kept=end.kept, skipped=end.skipped)
        return self._under_claim(granted, name, self.statements.steps.end, result=end.result, flags=flags)

    def cancel_step(self, granted: Granted, name: str) -> bool:
        """See `ports.LedgerStore.cancel_step`."""
        return self._under_claim(granted, name, self.statements.steps.cancel)

    def steps(self, digest: bytes) -> Sequence[Step]:
        """See `ports.LedgerStore.steps`."""
        statement = self.statements.steps.all
        return self._looked(
            lambda connection: [_step_of(row) for row in connection.execute(statement, {"digest": digest})]
        )

    def _under_claim(self, granted: Granted, name: str, statement: Any, **changes: Any) -> bool:
        values = {**_values(granted, name), **changes}

        def write(connection: Connection) -> bool:
            if connection.execute(self.statements.steps.mine, values).first() is None:
                return False
            connection.execute(statement, values)
            return True

        return self._settled(write)

    @contextmanager
    def fenced(self, granted: Granted, *, key: str) -> Iterator[Session]:
        """See `ports.TransactionalStore.fenced`; the check is the last statement, under a lock kept to the commit."""
        with exempt(), self._outside_forks(), self._connected() as connection:
            self._begin_fenced(connection)
            session = self.source.session(connection)
            try:
                yield session
                session.commit()
            finally:
                session.close()
            if not self._asked(lambda: connection.execute(self.statements.steps.mine, held_values(granted)).first()):
                raise FenceRefused(key=key, fence=granted.fence, attempt=granted.attempt.hex())
            try:
                connection.commit()
            except DBAPIError as error:
                if self.is_lost(error):
                    raise CommitUncertain(key=key) from error
                raise

    def _begin_fenced(self, connection: Connection) -> None:
        _ = self.statements

        def begin() -> None:
            self.dialect.see_commits(connection)
            connection.begin()
            self.dialect.begin(connection, wait=SETTLE_WAIT)

        self._asked(begin)

    def _asked(self, question: Callable[[], T]) -> T:
        """Ask on a connection that is open already; an error of it is told in our words."""
        try:
            with self.errors():
                return question()
        except Locked as error:
            raise self._held_too_long() from error


def _values(granted: Granted, name: str) -> dict[str, Any]:
    return {**held_values(granted), "mark": blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()}


def _step_of(row: Any) -> Step:
    return Step(
        name=row.name,
        attempt=bytes(row.attempt),
        fence=row.fence,
        began=row.began / MICROS,
        ended=None if row.ended is None else row.ended / MICROS,
        result=None if row.result is None else bytes(row.result),
        kept=not row.flags & STEP_NOT_KEPT,
        holds=bool(row.flags & STEP_HOLDS),
        skipped=bool(row.flags & STEP_SKIPPED),
    )
