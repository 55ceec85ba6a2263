"""How long a worker goes on holding a delivery at its broker.

Brokers such as Redis and SQS give a message to somebody else when it was not acknowledged within the visibility
timeout. A worker that lives says so three times in each timeout, for all that it holds. One answer may get lost, and
the next still comes in time. It says so for a body that runs, for a message that waits for a free slot, and for one
that waits for its eta, but not for ever: a body that hangs must come back one day. The age of a delivery is
counted from when it was due, so a far eta uses up none of it.
"""

from dataclasses import dataclass

RENEWALS_IN_A_TIMEOUT = 3


def renewal_interval(visibility_timeout: float) -> float:
    """Seconds between two renewals."""
    return visibility_timeout / RENEWALS_IN_A_TIMEOUT


def is_far(delay: float, visibility_timeout: float) -> bool:
    """Tell whether a message that is due in *delay* seconds outlives a timeout while a worker holds it."""
    return delay > visibility_timeout


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """One delivery that this worker holds since *since*; it may run from *due* on (both on the same clock)."""

    since: float
    due: float

    def is_too_old(self, now: float, *, at_most: float | None) -> bool:
        """Tell whether it was held so long after it could run that it must be taken for stuck."""
        return at_most is not None and now - max(self.since, self.due) > at_most
