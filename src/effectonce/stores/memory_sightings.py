"""Sightings in the memory of one process."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from effectonce.domain.sightings import KEPT, Sighting


class MemorySightings:
    """The part of `ports.LedgerStore` that counts what was only observed; *clock* gives epoch seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._seen_at = clock
        self._seeing = threading.Lock()
        self._seen: dict[bytes, Sighting] = {}

    def see(self, sighting: Sighting) -> None:
        """Count it by its mark."""
        with self._seeing:
            now = self._seen_at()
            earlier = self._seen.get(sighting.mark, replace(sighting, times=0, first=now))
            self._seen[sighting.mark] = replace(sighting, times=earlier.times + 1, first=earlier.first, last=now)

    def sightings(self, *, limit: int) -> Sequence[Sighting]:
        """Give the latest first."""
        with self._seeing:
            return sorted(self._seen.values(), key=lambda seen: -seen.last)[:limit]

    def forget_sightings(self) -> int:
        """Forget the old ones."""
        with self._seeing:
            over = self._seen_at() - KEPT
            old = [mark for mark, seen in self._seen.items() if seen.last < over]
            for mark in old:
                del self._seen[mark]
        return len(old)
