"""The servers that trials use: what is found on this machine, or what was given."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from effectonce.lab.reaper import Reaper
from effectonce.lab.servers.faults import ServiceMissing
from effectonce.lab.servers.postgresql import PostgreSQL
from effectonce.lab.servers.rabbitmq import RabbitMQ
from effectonce.lab.servers.redis import Redis

RABBITMQ: Final = "a RabbitMQ"
OWN_BROKER: Final = "a Redis of its own, which is killed"
OWN_LEDGER: Final = "a PostgreSQL of its own, which is killed"
SERVER_LEDGER: Final = "a PostgreSQL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Addresses that trials share. None for *broker*: each trial has a Redis of its own. None for *ledger*: a file."""

    broker: str | None
    rabbitmq: str | None
    ledger: str | None
    owns_ledger: bool

    def missing(self, needs: frozenset[str]) -> str | None:
        """Say which of *needs* is not to be had here, None when all is."""
        there = {
            RABBITMQ: self.rabbitmq is not None,
            OWN_BROKER: self.broker is None,
            OWN_LEDGER: self.owns_ledger,
            SERVER_LEDGER: self.ledger is not None,
        }
        return next((need for need in sorted(needs) if not there[need]), None)


@contextmanager
def parts(folder: Path, *, broker: str | None, ledger: str | None, needs: frozenset[str]) -> Iterator[Parts]:
    """Start what *needs* asks for and the machine has; ended when the context is left, or when we are killed."""
    with ExitStack() as undo:
        reaper = Reaper()
        undo.callback(reaper.close)
        is_rabbit = broker is not None and broker.startswith(("amqp", "pyamqp"))
        rabbitmq, postgresql = RabbitMQ(folder / "rabbitmq", reaper=reaper), PostgreSQL(folder / "sql", reaper=reaper)
        own_rabbit = broker is None and RABBITMQ in needs and _started(rabbitmq, undo)
        own_ledger = ledger is None and _started(postgresql, undo)
        yield Parts(
            broker=None if is_rabbit else broker,
            rabbitmq=broker if is_rabbit else rabbitmq.url if own_rabbit else None,
            ledger=postgresql.fresh_url() if own_ledger else None if ledger == "sqlite" else ledger,
            owns_ledger=own_ledger,
        )


def _started(server: RabbitMQ | PostgreSQL | Redis, undo: ExitStack) -> bool:
    try:
        server.start()
    except ServiceMissing:
        return False
    undo.callback(server.kill)
    return True
