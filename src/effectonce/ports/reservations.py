"""What `Unique` needs from a store: names that are reserved for a time."""

from typing import Protocol


class ReservationStore(Protocol):
    """Where names are reserved for a time: by a unique constraint, never by looking first."""

    def reserve(self, name: bytes, holder: str, seconds: float) -> str:
        """Reserve *name* (16 bytes) for *seconds*, if nobody has it; answers its holder, this one or the other.

        Asked again by its holder it answers the same, and its end stays. After a crash it stands until its end.
        """

    def give_back(self, name: bytes, holder: str) -> bool:
        """End a reservation before its time, if *holder* has it; answers whether it had."""

    def forget_reservations(self) -> int:
        """Sweep away what has ended; answers how many there were."""
