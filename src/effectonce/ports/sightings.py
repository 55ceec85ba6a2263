"""What observing needs from a store."""

from collections.abc import Sequence
from typing import Protocol

from effectonce.domain.sightings import Sighting


class SightingStore(Protocol):
    """Where it is written down what policies would have done."""

    def see(self, sighting: Sighting) -> None:
        """Count *sighting* by its mark: the first time it is written, later its times, last and task id change."""
        ...

    def sightings(self, *, limit: int) -> Sequence[Sighting]:
        """Up to *limit* of them, the latest first."""
        ...

    def forget_sightings(self) -> int:
        """Sweep away what was last seen longer ago than `domain.sightings.KEPT`; answers how many there were."""
        ...
