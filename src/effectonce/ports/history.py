"""What is kept of that which was not ordinary; see `effectonce.ports`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Something about one effect that was not ordinary.

    *name* is the event's, *cause* one of `domain.causes` or empty. *times*: how often it happened in one go; *ago*:
    seconds since then, when it is written. Read back it has *id*, which grows, *at* (epoch seconds, the store's
    clock) and, where the entry is still there, the *key*'s text.
    """

    digest: bytes
    name: str
    cause: str = ""
    task: str = ""
    task_id: str = ""
    attempt: str = ""
    fence: int = 0
    times: int = 1
    ago: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    id: int = 0
    at: float = 0.0
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How often *name* happened with *cause* in the minute that began at *minute* (epoch minutes, the store's)."""

    minute: int
    name: str
    cause: str
    number: int


class HistoryStore(Protocol):
    """Where it is kept. It holds no keys and no arguments, so nothing in it is to be redacted."""

    def record(self, happened: Sequence[Happened], counted: Mapping[tuple[str, str], int]) -> None:
        """Write a batch: rows, and how often each pair of name and cause happened in the minute that it is now."""
        ...

    def of(self, digest: bytes, *, limit: int) -> Sequence[Happened]:
        """The latest of one effect, oldest first."""
        ...

    def recent(self, *, limit: int, before: int | None = None) -> Sequence[Happened]:
        """The latest of all effects, newest first; *before*: with a smaller id."""
        ...

    def tallies(self, *, minutes: int) -> Sequence[Tally]:
        """What was counted in the last *minutes*, this one included, oldest first."""
        ...

    def trim(self, *, rows: int, minutes: int) -> int:
        """Forget all but about the last *rows*, and counts older than *minutes*; answers how many rows went."""
        ...
