"""`SqlOutbox`: messages that commit with the work that sends them, in the ledger's own database."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from effectonce import crashpoints
from effectonce.domain.outbox import GRACE, Depth, Message, Stage, Stored
from effectonce.ports.outbox import Batch
from effectonce.stores.sql.dialects import MICROS
from effectonce.stores.sql.listening import Listener
from effectonce.stores.sql.outbox_statements import OutboxStatements
from effectonce.stores.sql.rows import micros
from effectonce.stores.sql.sessions import Dispatch, SessionOutbox, outbox_of, session_of

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger


class SqlOutbox:
    """The outbox of a ledger; see `ports.outbox.OutboxStore`."""

    def __init__(self, ledger: "SqlLedger") -> None:
        self._ledger = ledger

    @property
    def statements(self) -> OutboxStatements:
        """The statements, for tables that were found to be usable."""
        return self._ledger.statements.outbox

    def here(self, *, dispatch: Dispatch) -> Batch | None:
        """See `ports.outbox.OutboxStore.here`: a session is given by name."""
        del dispatch
        return None

    def forgo(self) -> None:
        """See `ports.outbox.OutboxStore.forgo`."""
        self._ledger.stores_messages = False

    def around(self, *, dispatch: Dispatch) -> Any:
        """See `ports.outbox.OutboxStore.around`: sessions that are bound are found elsewhere (`bound`)."""
        del dispatch

    def store(self, messages: Sequence[Message], *, effect: bytes | None = None) -> Sequence[Stored]:
        """See `ports.outbox.OutboxStore.store`."""
        if not self._ledger.stores_messages:
            return _unstored(messages)
        return self._ledger.settle(lambda connection: self.store_on(connection, messages, effect=effect))

    def store_on(
        self, connection: Connection, messages: Sequence[Message], *, effect: bytes | None = None
    ) -> list[Stored]:
        """Store messages in the transaction of *connection*, in one statement; the caller sends the answer after it."""
        if not self._ledger.stores_messages:
            return _unstored(messages)
        crashpoints.crash_point("outbox.before")
        statements = self.statements
        if statements.keep_order is not None:
            for order in sorted({message.order for message in messages if message.order is not None}):
                connection.execute(statements.keep_order, {"in_order": order})
        rows = [row_of(message, effect=effect) for message in messages]
        if self._ledger.dialect.lists == "arrays":
            together = {name: [row[name] for row in rows] for name in rows[0]}
            ids = list(connection.execute(statements.store, together).scalars())
        else:
            ids = [connection.execute(statements.store, row).scalar_one() for row in rows]
        if statements.notify is not None and any(message.is_for_relay for message in messages):
            connection.execute(statements.notify)
        crashpoints.crash_point("outbox.after")
        return [
            Stored(id=id_, message=message, tries=0)
            for id_, message in zip(ids, messages, strict=True)
            if not message.is_for_relay
        ]

    def join(self, session: Any, *, dispatch: Dispatch) -> SessionOutbox:
        """See `ports.outbox.OutboxStore.join`."""
        return outbox_of(self._ledger, session_of(session), dispatch=dispatch)

    def is_session_of(self, work: Any, session: Any) -> bool:
        """See `ports.outbox.OutboxStore.is_session_of`."""
        return work.session is session_of(session)

    def take(self, limit: int, *, hold: float, parked: bool = False) -> Sequence[Stored]:
        """See `ports.outbox.OutboxStore.take`."""
        statement = self.statements.all_due if parked else self.statements.due
        return self._ledger.settle(lambda connection: self._take_on(connection, statement, {"limit": limit}, hold))

    def take_of(self, effect: bytes, *, hold: float, at_once: bool) -> Sequence[Stored]:
        """See `ports.outbox.OutboxStore.take_of`."""
        values = {"effect": effect, "at_once": int(at_once)}
        return self._ledger.settle(lambda connection: self._take_on(connection, self.statements.due_of, values, hold))

    def _take_on(self, connection: Connection, due: Any, values: dict[str, Any], hold: float) -> list[Stored]:
        taken = [stored_of(row, tries=row.tries + 1) for row in connection.execute(due, values)]
        if taken:
            connection.execute(self.statements.take, {"ids": ids_of(taken), "hold": micros(hold)})
        return taken

    def strike(self, sent: Sequence[Stored]) -> None:
        """See `ports.outbox.OutboxStore.strike`."""
        self._write(self.statements.strike, sent, {})

    def give_back(self, unsent: Sequence[Stored], *, pause: float) -> None:
        """See `ports.outbox.OutboxStore.give_back`."""
        self._write(self.statements.give_back, unsent, {"pause": micros(pause)})

    def _write(self, statement: Any, which: Sequence[Stored], values: dict[str, Any]) -> None:
        if which:
            self._ledger.settle(lambda connection: connection.execute(statement, {"ids": ids_of(which), **values}))

    def refuse(self, stored: Stored, *, error: str, pause: float | None) -> None:
        """See `ports.outbox.OutboxStore.refuse`."""
        values = {
            "id": stored.id,
            "tries": stored.tries,
            "error": error,
            "stage": int(Stage.STUCK if pause is None else Stage.READY),
            "pause": micros(pause or 0),
        }
        self._ledger.settle(lambda connection: connection.execute(self.statements.refuse, values))

    def cancel(self, task_ids: Sequence[str]) -> int:
        """See `ports.outbox.OutboxStore.cancel`."""

        def cancel(connection: Connection) -> int:
            values = ({"task_id": task_id} for task_id in task_ids)
            return sum(connection.execute(self.statements.cancel, each).rowcount for each in values)

        return self._ledger.settle(cancel)

    def unstick(self) -> int:
        """See `ports.outbox.OutboxStore.unstick`."""
        return self._ledger.settle(lambda connection: int(connection.execute(self.statements.unstick).rowcount))

    def waiting(self, *, stage: Stage | None, limit: int) -> Sequence[Stored]:
        """See `ports.outbox.OutboxStore.waiting`."""
        values = {"stage": -1 if stage is None else int(stage), "limit": limit}
        return self._ledger.look(
            lambda connection: [stored_of(row) for row in connection.execute(self.statements.waiting, values)]
        )

    def depth(self) -> Depth:
        """See `ports.outbox.OutboxStore.depth`."""
        row = self._ledger.look(lambda connection: connection.execute(self.statements.depth).one())
        return Depth(
            ready=int(row.ready),
            parked=int(row.parked),
            stuck=int(row.stuck),
            oldest=0.0 if row.oldest is None else max(0.0, (row.now - row.oldest) / MICROS),
        )

    def elect(self, holder: bytes, *, seats: int, seconds: float) -> bool:
        """See `ports.outbox.OutboxStore.elect`."""
        return self._ledger.settle(lambda connection: self._elect_on(connection, holder, seats, seconds))

    def _elect_on(self, connection: Connection, holder: bytes, seats: int, seconds: float) -> bool:
        mine = connection.execute(self.statements.my_seat, {"holder": holder, "seats": seats}).scalar()
        tried = range(seats) if mine is None else [mine]
        values = {"holder": holder, "seconds": micros(seconds)}
        return any(
            connection.execute(statement, {**values, "seat": seat}).rowcount == 1
            for seat in tried
            for statement in (self.statements.sit, self.statements.sit_first)
        )

    def resign(self, holder: bytes) -> None:
        """See `ports.outbox.OutboxStore.resign`."""
        self._ledger.settle(lambda connection: connection.execute(self.statements.resign, {"holder": holder}))

    def listen(self, wake: Callable[[], None], *, url: str | None) -> Callable[[], None] | None:
        """See `ports.outbox.OutboxStore.listen`."""
        engine = self._ledger.source.engine
        if engine.dialect.name != "postgresql":
            return None
        return Listener(engine, wake, url=url, gate=self._ledger.gate).stop


def _unstored(messages: Sequence[Message]) -> list[Stored]:
    return [Stored(id=0, message=message, tries=0) for message in messages]


def row_of(message: Message, *, effect: bytes | None) -> dict[str, Any]:
    """The parameters that store a message."""
    return {
        "effect": effect,
        "task": message.task,
        "task_id": message.task_id,
        "in_order": message.order,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "content_type": message.content_type,
        "content_encoding": message.content_encoding,
        "headers": message.headers,
        "properties": message.properties,
        "declares": message.declares,
        "body": message.body,
        "stage": int(message.stage),
        "due": micros(message.due),
        "grace": 0 if message.is_for_relay else micros(GRACE),
    }


def stored_of(row: Any, *, tries: int | None = None) -> Stored:
    """A stored message as the domain knows it."""
    stage = Stage(row.stage)
    message = Message(
        task=row.task,
        task_id=row.task_id,
        exchange=row.exchange,
        routing_key=row.routing_key,
        content_type=row.content_type,
        content_encoding=row.content_encoding,
        body=bytes(row.body),
        headers=row.headers,
        properties=row.properties,
        declares=row.declares,
        due=row.due / MICROS if stage is Stage.PARKED else None,
        order=row.in_order,
    )
    return Stored(
        id=row.id,
        message=message,
        tries=row.tries if tries is None else tries,
        stage=stage,
        error=row.error or "",
        since=row.since / MICROS,
    )


def ids_of(stored: Sequence[Stored]) -> list[int]:
    """Their numbers."""
    return [each.id for each in stored]
