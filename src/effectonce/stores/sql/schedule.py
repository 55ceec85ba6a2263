"""Terms and ticks in the ledger's database.

A claim is one short transaction for all its ticks. Each row is inserted on condition that the term stands, by the
database's clock, and that its entry has had nothing as late; a unique index lets one of two through that do so in the
same moment. The messages of ticks go into the outbox in the transaction that claims them: there is no tick without its
message, and no message without its tick. A row is marked when the schedule knows of it, too.

A process may be stopped at any instant, and must not hold a lock then that its successor needs. So every other
statement commits by itself, at the server, and the transaction of a claim is cut off by the server when its leader has
been silent for a lease (PostgreSQL). SQLite has no server: a process that is stopped while it writes stops all writers.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, TypeVar

from sqlalchemy import Connection, bindparam, select

from effectonce.domain.outbox import Message, Stored
from effectonce.domain.terms import Seat, Term
from effectonce.domain.ticks import Claimed, Recorded, Tick, TickClaim, TickState
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.escapes import exempt
from effectonce.stores.sql.locked import Locked
from effectonce.stores.sql.rows import micros
from effectonce.stores.sql.schedule_statements import KEPT, ScheduleStatements
from effectonce.stores.sql.source import Source
from effectonce.stores.sql.transactions import ShortTransactions

if TYPE_CHECKING:
    from effectonce.stores.sql.outbox import SqlOutbox

T = TypeVar("T")

AHEAD: Final = 60 * MICROS
"""How far a tick may lie ahead of the database's clock."""

_PATIENCE: Final = 10_000
"""Milliseconds after which PostgreSQL cuts off a leader that stopped inside a transaction, if its lease is unknown."""


class SqlSchedule(ShortTransactions):
    """A `ports.ScheduleStore` on the tables and the engine of a SQL ledger, with its *outbox* beside it."""

    def __init__(self, source: Source, *, schema: str | None, create: bool, outbox: "Callable[[], SqlOutbox]") -> None:
        super().__init__(source, schema=schema, create=create)
        self._outbox = outbox
        self._since_trim: Counter[bytes] = Counter()
        self._patience = _PATIENCE

    @cached_property
    def _schedule(self) -> ScheduleStatements:
        quote = self.source.engine.dialect.identifier_preparer.format_table
        return ScheduleStatements(self.dialect, self._tables.terms, self._tables.ticks, quote)

    def win(self, name: str, *, holder: bytes, who: str, length: float) -> Term | None:
        """See `ports.LeaseStore.win`."""
        self._patience = max(int(length * 1000), 1000)
        values = {"term": _digest(name), "name": name, "holder": holder, "who": who, "length": micros(length)}
        mine = {"term": values["term"], "holder": holder}

        def win(connection: Connection) -> int | None:
            statements = self._schedule
            won = connection.execute(statements.first, values).rowcount == 1
            if not won:
                renewed = {key: values[key] for key in ("term", "holder", "who", "length")}
                won = connection.execute(statements.win, renewed).rowcount == 1
            fence: int | None = connection.execute(statements.fence if won else statements.mine, mine).scalar()
            return fence

        fence = self._by_itself(win)
        return None if fence is None else Term(name=name, fence=fence, holder=holder)

    def renew_term(self, term: Term, *, length: float) -> bool:
        """See `ports.LeaseStore.renew_term`."""
        values = {**_held(term), "length": micros(length)}
        return self._by_itself(lambda connection: connection.execute(self._schedule.renew, values).rowcount == 1)

    def resign(self, term: Term) -> None:
        """See `ports.LeaseStore.resign`."""
        self._by_itself(lambda connection: connection.execute(self._schedule.resign, _held(term)).rowcount)

    def seats(self) -> Sequence[Seat]:
        """See `ports.LeaseStore.seats`."""
        return self._looked(
            lambda connection: [
                Seat(
                    name=row.name,
                    fence=row.fence,
                    who=row.who,
                    since=row.since / MICROS,
                    left=(row.ends - row.now) / MICROS,
                )
                for row in connection.execute(self._schedule.seats)
            ]
        )

    def claim_ticks(self, term: Term, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        """See `ports.TickStore.claim_ticks`."""
        if not claims:
            return []
        return self._settled(lambda connection: self._claim_on(connection, term, claims))

    def claim_and_store(
        self, term: Term, claims: Sequence[TickClaim], messages: Sequence[Sequence[Message]]
    ) -> tuple[Sequence[Claimed], Sequence[Stored]]:
        """See `ports.StoringTickStore.claim_and_store`."""
        outbox = self._outbox()
        _ = outbox.statements

        def step(connection: Connection) -> tuple[list[Claimed], list[Stored]]:
            answers = self._claim_on(connection, term, claims)
            granted = [
                message
                for answer, of_claim in zip(answers, messages, strict=True)
                if answer is Claimed.GRANTED
                for message in of_claim
            ]
            return answers, outbox.store_on(connection, granted) if granted else []

        return self._settled(step) if claims else ([], [])

    def _claim_on(self, connection: Connection, term: Term, claims: Sequence[TickClaim]) -> list[Claimed]:
        held = _held(term)
        self.dialect.limit_silence(connection, self._patience / 1000)
        if not connection.execute(self._schedule.stands, {**held, "patience": str(self._patience)}).scalar():
            return [Claimed.FENCED] * len(claims)
        rows = [{**held, **_row(claim)} for claim in claims]
        # All at once, since nearly always all are granted; where not, they are undone and each is asked about.
        all_at_once = connection.begin_nested()
        if connection.execute(self._schedule.claim, rows).rowcount == len(rows):
            all_at_once.commit()
            for claim in claims:
                self._trim(connection, claim.tick.entry)
            return [Claimed.GRANTED] * len(claims)
        all_at_once.rollback()
        return [self._claim_one(connection, held, claim) for claim in claims]

    def _claim_one(self, connection: Connection, held: Mapping[str, Any], claim: TickClaim) -> Claimed:
        tick, statements = claim.tick, self._schedule
        place = {"entry": tick.entry, "instant": tick.instant, **held}
        if connection.execute(statements.adopt, {**place, "state": int(claim.state)}).rowcount == 1:
            return Claimed.GRANTED
        if connection.execute(statements.claim, {**held, **_row(claim)}).rowcount == 1:
            self._trim(connection, tick.entry)
            return Claimed.GRANTED
        why = {**held, "instant": tick.instant, "ahead": AHEAD}
        return Claimed(int(connection.execute(statements.why, why).scalar() or 0))

    def _trim(self, connection: Connection, entry: bytes) -> None:
        """Keep an entry's newest ticks; now and then, since it need not be to the row."""
        self._since_trim[entry] += 1
        if self._since_trim[entry] >= KEPT:
            del self._since_trim[entry]
            connection.execute(self._schedule.trim, {"entry": entry})

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        """See `ports.TickStore.mark_ticks`."""
        values = [{"entry": tick.entry, "instant": tick.instant} for tick in ticks]
        if values:
            # All at once, which PostgreSQL's driver sends as one message, and the server commits as one.
            self._by_itself(lambda connection: connection.execute(self._schedule.mark, values))

    def _by_itself(self, step: Callable[[Connection], T]) -> T:
        """Run *step*, each of its statements a transaction of its own where there is a server."""
        if self.dialect.name == "sqlite":
            return self._settled(step)

        def run() -> T:
            _ = self.statements
            with self.errors(), self._connected() as connection, exempt():
                return step(connection.execution_options(isolation_level="AUTOCOMMIT"))

        try:
            return self._again(run)
        except Locked as error:
            raise self._held_too_long() from error

    def last_ticks(self, group: str, names: Sequence[str]) -> Mapping[str, Recorded]:
        """See `ports.TickStore.last_ticks`."""
        if not names:
            return {}
        table = self._tables.ticks
        entries = [Tick(group=group, name=name, instant=0).entry for name in names]
        # Primary key: the few rows that each entry keeps.
        statement = select(table).where(table.c.entry.in_(bindparam("entries", expanding=True)))

        def look(connection: Connection) -> dict[str, Recorded]:
            found: dict[str, Recorded] = {}
            for row in connection.execute(statement, {"entries": entries}):
                known = found.get(row.name)
                if known is None or row.instant > known.tick.instant:
                    found[row.name] = _recorded(group, row)
            return found

        return self._looked(look)

    def unmarked(self, group: str) -> Sequence[Recorded]:
        """See `ports.TickStore.unmarked`."""
        values = {"term": _digest(group)}
        return self._looked(
            lambda connection: [_recorded(group, row) for row in connection.execute(self._schedule.unmarked, values)]
        )

    def recent(self, *, limit: int) -> Sequence[Recorded]:
        """See `ports.TickStore.recent`."""
        return self._looked(
            lambda connection: [
                _recorded(row.term_name, row)
                for row in connection.execute(self._schedule.recent, {"limit": max(limit, 0)})
            ]
        )

    def coming(self, *, limit: int) -> Sequence[Recorded]:
        """See `ports.TickStore.coming`."""
        return self._looked(
            lambda connection: [
                _recorded(row.term_name, row)
                for row in connection.execute(self._schedule.coming, {"limit": max(limit, 0)})
            ]
        )


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _held(term: Term) -> dict[str, Any]:
    return {"term": _digest(term.name), "fence": term.fence, "holder": term.holder}


def _row(claim: TickClaim) -> dict[str, Any]:
    tick = claim.tick
    return {
        "entry": tick.entry,
        "instant": tick.instant,
        "state": int(claim.state),
        "missed": claim.missed,
        "following": claim.following,
        "name": tick.name,
        "ahead": AHEAD,
    }


def _recorded(group: str, row: Any) -> Recorded:
    return Recorded(
        tick=Tick(group=group, name=row.name, instant=row.instant),
        state=TickState(row.state),
        fence=row.fence,
        at=row.at / MICROS,
        missed=row.missed,
        following=row.following,
    )
