"""Where terms and ticks live; see `effectonce.ports`."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from effectonce.domain.outbox import Message, Stored
from effectonce.domain.terms import Seat, Term
from effectonce.domain.ticks import Claimed, Recorded, Tick, TickClaim


class LeaseStore(Protocol):
    """Where terms are won; `effectonce.testing.conformance.ScheduleConformance` is its specification."""

    def win(self, name: str, *, holder: bytes, who: str, length: float) -> Term | None:
        """Grant a term of *length* seconds from the store's now, unless somebody leads; None says that.

        Fences of a name only grow. Asked again by the *holder* of a term that has not ended (the answer was lost on
        the way), it gives that term. *who* is for people.
        """
        ...

    def renew_term(self, term: Term, *, length: float) -> bool:
        """Let a term that has not ended end *length* seconds from now; False: it has ended, or it is another's."""
        ...

    def resign(self, term: Term) -> None:
        """End a term now, so that another may win at once; another's term is left alone."""
        ...

    def seats(self) -> Sequence[Seat]:
        """Who leads what, or led it last; for people."""
        ...


class TickStore(Protocol):
    """Where ticks are claimed, under a term."""

    def claim_ticks(self, term: Term, claims: Sequence[TickClaim]) -> Sequence[Claimed]:
        """Answer each claim in its place; all are committed when this returns.

        Granted is a claim while the term stands, whose instant is not in the store's future (by more than a minute),
        and is later than all that its entry has had; or one that nobody has marked as sent yet, so that a crash
        between claim and mark loses nothing. It is one row for ever: no instant of an entry is granted anew after it
        was marked. `SEEN` and `SKIPPED` need no mark.
        """
        ...

    def mark_ticks(self, ticks: Sequence[Tick]) -> None:
        """Note that these were sent, and that their schedule knows it; whoever did that, also after its term."""
        ...

    def last_ticks(self, group: str, names: Sequence[str]) -> Mapping[str, Recorded]:
        """The latest tick of each entry that has one; it is never forgotten."""
        ...

    def unmarked(self, group: str) -> Sequence[Recorded]:
        """Ticks that were claimed or stored and not marked, oldest first."""
        ...

    def recent(self, *, limit: int) -> Sequence[Recorded]:
        """The latest ticks of each group, newest first; for people."""
        ...

    def coming(self, *, limit: int) -> Sequence[Recorded]:
        """The last tick of each entry that has another one, the soonest `following` first; for people."""
        ...


class StoringTickStore(TickStore, Protocol):
    """Where ticks are claimed in the same transaction that stores their messages."""

    def claim_and_store(
        self, term: Term, claims: Sequence[TickClaim], messages: Sequence[Sequence[Message]]
    ) -> tuple[Sequence[Claimed], Sequence[Stored]]:
        """Claim as `TickStore.claim_ticks` does, and store the *messages* of what is granted, in one commit.

        *messages*: those of each claim, in its place. The second answer: what was stored and the caller is to send; a
        relay sends what the caller does not. A tick whose claim is `STORED` is never granted again.
        """
        ...


class ScheduleStore(LeaseStore, TickStore, Protocol):
    """A store of terms and ticks; what it is asked raises LedgerUnavailable as a ledger does."""

    @property
    def name(self) -> str:
        """Where it is, as a URL without its password."""
        ...
