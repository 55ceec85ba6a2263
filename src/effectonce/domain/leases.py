"""When a holder must stop believing in its lease.

The store says who holds a lease. The holder only says when it stops acting, and it stops early: belief starts when
the request was sent, not when the answer came, so a slow answer never buys time (River counts trust the same way).
"""

from dataclasses import dataclass, replace

Monotonic = float
"""Seconds of a clock that never goes back, of this process alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A hold that its holder may act on until *trusted_until*; *length* is seconds from each asking."""

    length: float
    trusted_until: Monotonic

    @classmethod
    def asked(cls, at: Monotonic, *, length: float) -> "Lease":
        """A lease of *length* that was granted on a request sent at *at*."""
        return cls(length=length, trusted_until=at + length)

    def renewed(self, asked_at: Monotonic) -> "Lease":
        """The same lease after a renewal that was asked for at *asked_at*; trust never shrinks."""
        return replace(self, trusted_until=max(self.trusted_until, asked_at + self.length))

    def is_trusted(self, now: Monotonic) -> bool:
        """Tell whether the holder may still act at *now*."""
        return now < self.trusted_until

    def is_due(self, now: Monotonic) -> bool:
        """Tell whether a third of the lease has gone, so that two renewals may fail before it ends."""
        return now >= self.trusted_until - self.length * 2 / 3
