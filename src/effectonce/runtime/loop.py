"""A loop in a thread: runs one step again and again, and survives what it can name.

A step may fail because the ledger is away; the loop then waits longer each time. It is the one place that catches
`Exception`: a loop that dies in silence is worse than one that says why it failed and tries again.
"""

import logging
import threading
from collections.abc import Callable

from effectonce.errors import LedgerUnavailable

logger = logging.getLogger("effectonce")

_SLOWEST = 60.0


class Loop:
    """Runs *step* every *interval* seconds in a daemon thread until stopped.

    *step* answers True when there is more to do at once. After failures it waits longer, up to *slowest* seconds.
    """

    def __init__(self, name: str, step: Callable[[], bool], *, interval: float, slowest: float = _SLOWEST) -> None:
        self._name = name
        self._step = step
        self._interval = interval
        self._slowest = max(slowest, interval)
        self._stopped = threading.Event()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; starting a running loop does nothing."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name=f"effectonce-{self._name}", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Run the next step now; from any thread."""
        self._woken.set()

    def stop(self, timeout: float = 5.0) -> None:
        """Ask the loop to end and wait up to *timeout* seconds for the step in hand."""
        self._stopped.set()
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        pause = self._interval
        while not self._is_stopped_after(pause):
            try:
                more = self._step()
            except LedgerUnavailable:
                pause = min(pause * 2, self._slowest)
            except Exception:
                logger.exception("the %s failed and goes on", self._name)
                pause = min(pause * 2, self._slowest)
            else:
                pause = 0.0 if more else self._interval

    def _is_stopped_after(self, pause: float) -> bool:
        self._woken.wait(pause)
        if not self._stopped.is_set():
            self._woken.clear()
        return self._stopped.is_set()
