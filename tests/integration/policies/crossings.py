"""What the bodies of an `Exclusive` key noted: who came in, who went out."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.integration.worker.harness import Shop


def most_at_once(shop: Shop, what: str, *, dead: frozenset[int] = frozenset()) -> int:
    """The most bodies of *what* that were in at the same time; those of *dead* processes went out when they died.

    When that was, their file does not say, so the next one that comes in counts as having waited for it. The test has
    to say who is dead, and looks at the processes for that.
    """
    file = shop.folder / "crossings"
    inside: Counter[int] = Counter()
    most = 0
    for line, name, pid in (row.split() for row in file.read_text().splitlines()):
        if name == what and int(pid) not in dead:
            inside[int(pid)] += 1 if line == "in" else -1
            most = max(most, inside.total())
    return most


@contextmanager
def asleep(pid: int) -> Iterator[None]:
    """The process sleeps through everything that happens inside (SIGSTOP)."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
