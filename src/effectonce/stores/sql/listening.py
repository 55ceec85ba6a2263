"""Hearing of messages for the relays, on PostgreSQL.

``LISTEN`` lives in one session of the server, so it needs a connection of its own that no pooler shares out. What is
not heard is found by looking: a listener that loses its connection only makes the relay a little later.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Engine

from effectonce.stores.sql.engines import read_url
from effectonce.stores.sql.forks import ForkGate
from effectonce.stores.sql.outbox_statements import CHANNEL

logger = logging.getLogger("effectonce")

_AGAIN: Final = 30.0
"""Seconds until a lost connection is made again."""

_LOOK: Final = 1.0


class Listener:
    """Calls *wake* from a thread of its own whenever somebody stores a message for the relays."""

    def __init__(self, engine: Engine, wake: Callable[[], None], *, url: str | None, gate: ForkGate) -> None:
        self._gate = gate
        self._url = engine.url if url is None else read_url(url)
        self._connect_args = engine.dialect.create_connect_args(self._url)
        self._wake = wake
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="effectonce-listener", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; the connection is closed by the thread."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._listen()
            except Exception as error:  # noqa: BLE001 - the driver's errors have no name here, and looking goes on
                logger.info("the relay does not hear, and looks instead: %s", type(error).__name__)
            self._stopped.wait(_AGAIN)

    def _listen(self) -> None:
        with self._connection() as connection:
            connection.execute(f"listen {CHANNEL}")
            while not self._stopped.is_set():
                for _ in connection.notifies(timeout=_LOOK, stop_after=1):
                    self._wake()

    def _connection(self) -> Any:
        import psycopg  # noqa: PLC0415 - only where the ledger is on PostgreSQL

        args, options = self._connect_args
        with self._gate.passing():  # a child born while libpq sets itself up could never connect
            return psycopg.connect(*args, **{"application_name": "effectonce relay", **options, "autocommit": True})
