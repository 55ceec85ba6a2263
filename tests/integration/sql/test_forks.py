"""A process that forks while its ledger is at work: the child's ledger works too."""

import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from effectonce.domain.claims import Claim, Granted
from effectonce.stores.sql.ledger import SqlLedger
from tests.integration.sql.births import FIRST_USES

DELAYS = [0.0025, 0.0035, 0.0045, 0.0055]
"""Seconds; libpq sets itself up for about one millisecond of these."""

AT_ONCE = 5
"""Seconds, half of what a fork waits for others."""


def _claim(lease: float = 60.0) -> Claim:
    return Claim(
        digest=secrets.token_bytes(16),
        key="k",
        attempt=secrets.token_bytes(8),
        identity=secrets.token_bytes(16),
        task_id="",
        fingerprint=b"",
        lease=lease,
        max_takeovers=5,
    )


def test_a_child_born_during_a_transaction_is_not_locked_out_of_sqlite(tmp_path: Path) -> None:
    """Forty births beside a thread that never stops claiming, as a worker's rescuer may."""
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            ledger.claim(_claim())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        locked_out = [_is_locked_out(url) for _ in range(40)]
    finally:
        done.set()
        thread.join()
    assert not any(locked_out)


def _is_locked_out(url: str) -> bool:
    """Fork; the child tries for a while to get one claim through."""
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(20)
            ledger = SqlLedger.open(url)
            tries = (ledger.claim(_claim()) for _ in range(20))
            os._exit(0 if any(isinstance(answer, Granted) for answer in tries) else 1)
        except BaseException:  # noqa: BLE001 - a child must not come back into the test
            os._exit(2)
    return os.waitpid(pid, 0)[1] != 0


def test_a_child_leaves_the_connections_of_a_given_engine_to_its_parent(postgresql_url: str) -> None:
    """Both use the engine, each through a ledger of its own, as a worker and the children that it starts later do."""
    engine = sa.create_engine(postgresql_url, pool_size=1, max_overflow=0)
    ledger = SqlLedger.open(engine)
    ledger.create_schema()
    ours = _backend(engine)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(20)
            SqlLedger.open(engine).ping()
            os.write(writer, str(_backend(engine)).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    theirs = int(os.read(reader, 32))
    os.close(reader)
    ledger.ping()
    assert (theirs != ours, _backend(engine)) == (True, ours)
    engine.dispose()


def _backend(engine: sa.Engine) -> int:
    with engine.connect() as connection:
        return int(connection.scalar(sa.text("select pg_backend_pid()")) or 0)


def test_a_child_born_while_its_parent_meets_the_database_is_not_stuck(database: str) -> None:
    """A worker's rescuer asks for the first time while the pool forks: the child inherits what it has locked."""
    for _ in range(8):
        ledger = SqlLedger.open(database, create_schema=True)
        first = threading.Thread(target=ledger.ping)
        first.start()
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            try:
                ledger.ping()
            finally:
                os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        first.join()
        ledger.close()


@pytest.mark.parametrize("first_use", FIRST_USES)
def test_a_child_born_during_the_first_connection_of_its_process_is_not_stuck(
    postgresql_url: str, first_use: str
) -> None:
    """Without the gate about one child in three could never connect."""
    ledger = SqlLedger.open(postgresql_url)
    ledger.create_schema()
    ledger.close()
    command = [sys.executable, "-m", "tests.integration.sql.births", postgresql_url, first_use]
    said = [
        subprocess.run([*command, str(delay)], check=True, capture_output=True, text=True).stdout for delay in DELAYS
    ]
    assert said == ["False"] * len(DELAYS)


def test_a_transaction_that_forks_does_not_wait_for_itself(tmp_path: Path) -> None:
    """A body may start a process by itself; its ledger is SQLite, whose transactions keep a fork waiting."""
    ledger = SqlLedger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", create_schema=True)

    def fork(_: sa.Connection) -> int:
        began = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        return int(time.monotonic() - began)

    assert ledger.settle(fork) < AT_ONCE
    ledger.close()
