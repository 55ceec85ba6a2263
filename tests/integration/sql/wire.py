"""What goes over the wire to PostgreSQL: libpq's own trace of a connection, message by message."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from psycopg import pq

_ASKING = {"Query", "Parse", "Execute", "Sync"}


@dataclass
class Wire:
    """*statements* in their order, and the number of times that somebody waited for the server."""

    statements: list[str] = field(default_factory=list)
    round_trips: int = 0

    @property
    def verbs(self) -> list[str]:
        """The first word of each statement."""
        return [statement.split(maxsplit=1)[0].lower() for statement in self.statements]


@contextmanager
def tapped(engine: sa.Engine) -> Iterator[Wire]:
    """Listen to every connection that *engine* hands out meanwhile."""
    wire, traces = Wire(), []

    def listen(driver: Any, *_: Any) -> None:
        file = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed below
        driver.pgconn.trace(file.fileno())
        driver.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        traces.append((driver, file))

    def leave(*_: Any) -> None:
        driver, file = traces.pop()
        driver.pgconn.untrace()
        file.seek(0)
        _read(file.read(), wire)
        file.close()

    sa.event.listen(engine, "checkout", listen)
    sa.event.listen(engine, "checkin", leave)
    try:
        yield wire
    finally:
        sa.event.remove(engine, "checkout", listen)
        sa.event.remove(engine, "checkin", leave)


def _read(trace: str, wire: Wire) -> None:
    r"""Lines such as ``F\t13\tQuery\t "BEGIN"`` and ``F\t98\tParse\t "" "insert ..." 0``; F is to the server."""
    for line in trace.splitlines():
        side, _, rest = line.partition("\t")
        if side != "F":
            continue
        _, kind, *words = rest.split("\t", 2)
        text = "".join(words)
        if kind == "Query":
            wire.statements.append(text.strip().strip('"'))
            wire.round_trips += 1
        elif kind == "Parse":
            wire.statements.append(text.split('" "', 1)[-1])
        elif kind == "Sync":
            wire.round_trips += 1
