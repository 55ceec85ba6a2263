"""A term: a lease on leadership.

Many beats run, one leads. The store grants a term for a while, each with a larger *fence* than all before it. A term
that has ended can be neither renewed nor given back: its leader has to win again, and gets a new fence. So whatever a
leader that slept still does, the store can tell it from its successor.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """The right to lead *name*, as it was granted; *holder*, random, tells two leaders of one fence apart."""

    name: str
    fence: int
    holder: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Who leads *name*, as anybody may see it: since when (epoch seconds), and for how many seconds more."""

    name: str
    fence: int
    who: str
    since: float
    left: float

    @property
    def is_held(self) -> bool:
        """Tell whether somebody leads."""
        return self.left > 0
