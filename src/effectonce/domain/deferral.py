"""How long a delivery waits that may not run now.

It waits for the holder's lease to end, or, where the holder has none (a first attempt of a `Transactional` effect),
1, 2, 4 ... seconds. Jitter goes upwards by up to a quarter, so that many that wait for one lease do not come
back at one instant, and none comes before the lease can have ended. A cap keeps the copy within what the broker
can hold without delivering it again.
"""

CAP = 60.0
"""Seconds; the most that a copy waits before it looks again."""

_FLOOR = 0.25
_JITTER = 0.25


def busy_delay(*, wait: float | None, deferrals: int, jitter: float, cap: float = CAP) -> float:
    """Seconds until a busy delivery looks again; *jitter* is a number drawn from [0, 1)."""
    base = backoff(deferrals) if wait is None else max(wait, min(backoff(deferrals), _FLOOR * 2 ** min(deferrals, 8)))
    return _spread(base, jitter=jitter, cap=cap)


def away_delay(*, deferrals: int, jitter: float, cap: float = CAP) -> float:
    """Seconds until a delivery looks again whose ledger could not be asked; grows with each time."""
    return _spread(backoff(deferrals), jitter=jitter, cap=cap)


def backoff(deferrals: int) -> float:
    """1, 2, 4 ... 60 seconds."""
    return min(2.0 ** min(deferrals, 6), CAP)


def _spread(base: float, *, jitter: float, cap: float) -> float:
    capped = min(max(base, _FLOOR), cap / (1 + _JITTER))
    return capped * (1 + _JITTER * jitter)
