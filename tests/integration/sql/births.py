"""A process that forks a moment after its first connection began: `python -m tests.integration.sql.births`.

The first connection of a process sets libpq up. So each try needs a process of its own, and none of the test's.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from effectonce.stores.sql.ledger import SqlLedger

AS_LONG = 15
"""Seconds after which the child is taken to be stuck."""


def _listens(url: str) -> Callable[[], object]:
    return SqlLedger.open(url).outbox.listen(lambda: None, url=None) or (lambda: None)


def _asks(url: str) -> Callable[[], object]:
    thread = threading.Thread(target=SqlLedger.open(url).ping)
    thread.start()
    return thread.join


FIRST_USES = {"listens": _listens, "asks": _asks}


def is_stuck(url: str, first_use: str, delay: float) -> bool:
    """Fork *delay* seconds after the first connection was begun in a thread; True: the child could not connect."""
    end = FIRST_USES[first_use](url)
    time.sleep(delay)
    pid = os.fork()
    if pid == 0:
        signal.alarm(AS_LONG)
        try:
            SqlLedger.open(url).ping()
        finally:
            os._exit(0)
    stuck = os.waitpid(pid, 0)[1] != 0
    end()
    return stuck


if __name__ == "__main__":
    sys.stdout.write(str(is_stuck(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
    sys.stdout.flush()
    os._exit(0)
