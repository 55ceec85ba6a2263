"""What a ledger can say about itself without reading itself to the end; see `effectonce.ports`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from effectonce.domain.claims import Entry, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One page of a search: what was *found* among the rows looked at; *after*: where the next begins, None: over."""

    found: Sequence[Entry]
    looked: int
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """About how many entries there are, and how many *bytes* all tables of the ledger take."""

    entries: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """Whether a pooler is there, and after how many runs the driver prepares; None: never."""

    pooled: bool
    threshold: int | None

    @property
    def prepares(self) -> bool:
        """Whether statements are prepared."""
        return self.threshold is not None


class SurveyStore(Protocol):
    """Answers in a time that does not grow with the ledger."""

    def standing(self) -> Mapping[State, int]:
        """How many entries are claimed, unknown, poisoned; counted."""
        ...

    def size(self) -> Size:
        """Estimated."""
        ...

    def search(self, words: str, *, state: State | None, limit: int, look: int, after: bytes | None) -> Leaf:
        """Entries whose key or task id has *words* in it, among the next *look* in the order of their digests."""
        ...

    def now(self) -> float:
        """The store's clock, epoch seconds."""
        ...

    def pooling(self) -> "Pooling | None":
        """What lies between us and the database; None where nothing can."""
        ...

    def missing_indices(self) -> Sequence[str]:
        """Indices that the ledger's tables should have and do not."""
        ...
