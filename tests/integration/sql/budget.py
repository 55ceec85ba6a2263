"""A guarded task, the same statements without the guard, and an empty task, each run by Celery's own tracer.

What is left of the first when the second is taken away is the guard itself: its Python, and no database. The statements
of the twin are the ledger's own, so both say the same to the server.
"""

import sys
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from celery import Celery
from celery.app.task import Context
from celery.app.trace import build_tracer

from effectonce import EffectOnce, Leased, Transactional
from effectonce.domain.claims import State
from effectonce.stores.sql.dialects import CLAIM_WAIT
from effectonce.stores.sql.rows import claim_values, silence_values

if TYPE_CHECKING:
    from effectonce.stores.sql.ledger import SqlLedger

UPDATE = sa.text("update rows_of_bodies set x = x + 1 where id = :id")
ROWS = 64


class Budget:
    """Tasks ``guarded``, ``twin``, ``bare``, ``leased`` and ``empty`` on one ledger; `run` traces one message."""

    def __init__(self, url: str) -> None:
        self.app = Celery("budget", broker="redis://nobody", backend="disabled://", set_as_current=False)
        self.app.conf.task_ignore_result = True
        self.once = EffectOnce(self.app, ledger=url)
        ledger: Any = self.once.ledger
        self.ledger: SqlLedger = ledger
        self.ledger.create_schema()
        self.engine: sa.Engine = self.ledger.source.engine
        with self.engine.begin() as connection:
            connection.execute(sa.text("create table rows_of_bodies (id integer primary key, x integer)"))
            connection.execute(sa.text("insert into rows_of_bodies values (:id, 0)"), [{"id": n} for n in range(ROWS)])
        self._claims: list[dict[str, Any]] = []
        self._define()
        self.app.finalize()
        self._tracers = {name: build_tracer(name, task, app=self.app) for name, task in self.app.tasks.items()}
        for name in ("guarded", "twin", "bare", "leased", "empty"):
            self.run(name)

    def _define(self) -> None:
        app, once, engine = self.app, self.once, self.engine

        @app.task(name="guarded", shared=False, once=Transactional("budget:{number}"))
        def guarded(number: int, amount: int) -> None:
            once.connection.execute(UPDATE, {"id": number % ROWS})

        @app.task(name="twin", shared=False)
        def twin(number: int, amount: int) -> None:
            with engine.connect() as connection, connection.begin():
                self.ledger.dialect.begin(connection, wait=CLAIM_WAIT)
                result = connection.execute(self.ledger.statements.begin, self._claims.pop())
                assert self.ledger.dialect.fence_of(result)
                connection.execute(UPDATE, {"id": number % ROWS})

        @app.task(name="bare", shared=False)
        def bare(number: int, amount: int) -> None:
            with engine.begin() as connection:
                connection.execute(UPDATE, {"id": number % ROWS})

        @app.task(name="leased", shared=False, once=Leased("leased:{number}"))
        def leased(number: int, amount: int) -> None: ...

        @app.task(name="empty", shared=False)
        def empty(number: int, amount: int) -> None: ...

    def prepare(self, name: str, number: int | None = None) -> Callable[[], None]:
        """One message of a task, ready to be traced; *number* is its key, a new one unless given."""
        task = self.app.tasks[name]
        arguments = (uuid.uuid4().int % 2**60 if number is None else number, 1)
        request = _request(name, arguments)
        if name == "twin":
            guarded = self.app.tasks["guarded"]
            guard = self.once.guard_of(guarded)
            assert guard is not None
            claim = guard.frame(guarded, Context(request), arguments, {}, None).claim
            values = claim_values(claim, state=State.COMPLETED, keep=claim.keep)
            self._claims.append({**values, **silence_values(claim.longest_silence)})
        tracer = self._tracers[task.name]

        def trace() -> None:
            state = tracer(request["id"], arguments, {}, request).info
            assert state is None, (state.state, state.retval)

        return trace

    def run(self, name: str, number: int | None = None) -> None:
        """Trace one message."""
        self.prepare(name, number)()

    def calls(self, name: str, number: int | None = None) -> int:
        """How many Python functions are called while one message is traced."""
        trace, count = self.prepare(name, number), 0

        def note(_frame: Any, event: str, _argument: Any) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(note)
        try:
            trace()
        finally:
            sys.setprofile(None)
        return count

    def processor_seconds(self, name: str, messages: int) -> float:
        """This thread's processor time for one message, over some of them."""
        traces = [self.prepare(name) for _ in range(messages)]
        began = time.thread_time()
        for trace in traces:
            trace()
        return (time.thread_time() - began) / messages

    def close(self) -> None:
        """Give up the connections."""
        self.ledger.close()
        self.app.close()


def _request(name: str, arguments: tuple[int, int]) -> dict[str, Any]:
    """A message as a worker's request has it, sent by nobody in particular."""
    return {
        "id": str(uuid.uuid4()),
        "task": name,
        "args": list(arguments),
        "kwargs": {},
        "headers": {},
        "delivery_info": {"routing_key": "budget", "redelivered": False},
        "properties": {},
        "hostname": "budget",
        "called_directly": False,
        "is_eager": False,
        "retries": 0,
        "replaced_task_nesting": 0,
        "timelimit": (None, None),
        "callbacks": None,
        "errbacks": None,
        "chain": None,
        "chord": None,
        "ignore_result": True,
        "reply_to": None,
    }
