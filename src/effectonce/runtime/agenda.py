"""Which entry is to be looked at next: a heap of instants, one for each name.

A name that is put again counts from then on; what the heap still holds of before is passed over.
"""

import heapq

from effectonce.domain.series import Instant


class Agenda:
    """Names by the instant at which to look at them; cheap for ten thousand of them."""

    def __init__(self) -> None:
        self._at: dict[str, Instant] = {}
        self._heap: list[tuple[Instant, str]] = []

    def put(self, name: str, at: Instant | None) -> None:
        """Look at *name* at this instant; None is never."""
        if at is None:
            self.drop(name)
            return
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))
        if len(self._heap) > 2 * len(self._at) + 64:
            self._heap = [(when, each) for each, when in self._at.items()]
            heapq.heapify(self._heap)

    def drop(self, name: str) -> None:
        """Forget it."""
        self._at.pop(name, None)

    def take(self, now: Instant) -> list[str]:
        """The names whose instant has come, earliest first; they are off the agenda then."""
        taken = []
        while (first := self.first()) is not None and first <= now:
            _, name = heapq.heappop(self._heap)
            del self._at[name]
            taken.append(name)
        return taken

    def first(self) -> Instant | None:
        """The earliest instant there is."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
