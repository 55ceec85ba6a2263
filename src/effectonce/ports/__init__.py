"""What the domain needs from the outside, as protocols.

A store does what it is asked and decides nothing; the decisions are in `effectonce.domain.claims`. Every method is
one round trip where its store can do that. All of them raise `LedgerUnavailable` (or its kind `SchemaMissing`)
when the store cannot be asked, and then nothing is known to have happened: a claim may or may not stand, and its
lease will end. Seconds are the store's own.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, Refused, State
from effectonce.domain.following import Following
from effectonce.domain.outbox import Message, Stored
from effectonce.domain.steps import End, Step
from effectonce.ports.exchanges import ExchangeWork
from effectonce.ports.history import HistoryStore
from effectonce.ports.keeping import Keeping
from effectonce.ports.keeping import Pruned as Pruned
from effectonce.ports.outbox import OutboxStore
from effectonce.ports.reservations import ReservationStore
from effectonce.ports.schedule import LeaseStore as LeaseStore
from effectonce.ports.schedule import ScheduleStore as ScheduleStore
from effectonce.ports.schedule import StoringTickStore as StoringTickStore
from effectonce.ports.schedule import TickStore as TickStore
from effectonce.ports.sightings import SightingStore
from effectonce.ports.surveys import SurveyStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewal:
    """One held claim to be renewed for *lease* seconds from the store's now."""

    digest: bytes
    attempt: bytes
    fence: int
    lease: float


class LedgerStore(Keeping, ReservationStore, SightingStore, Protocol):
    """Where entries live. Third parties can write one: `effectonce.testing.conformance` is its specification."""

    @property
    def name(self) -> str:
        """Where it is, as a URL without its password."""
        ...

    def claim(self, claim: Claim) -> Granted | Refused:
        """Grant as `domain.claims.admit` says, committed, without waiting for anybody who holds the key.

        A granted claim leaves the entry CLAIMED with the claim's fingerprint, identity, task id and lease, and
        with no result. After a crash of the caller it stands until its lease ends. Asked again by the attempt that
        holds it (the answer was lost on the way), it gives the same grant; nothing is counted twice.
        """
        ...

    def complete(self, granted: Granted, outcome: Outcome) -> bool:
        """End the claim for good, if its fence and attempt still hold the entry; False means fenced.

        True again, and nothing written, when this attempt has completed it before: the answer may have been lost.
        """
        ...

    def release(self, granted: Granted, *, retries: int, reset: bool, keep: float | None) -> bool:
        """Let the key go, keeping fence and attempts; *reset* sets deaths to 0. False means fenced.

        *retries* is the number that the retry's message carries; a failure writes 0. The tombstone lives *keep*.
        True again while the key is free and no other attempt has had it since: the answer may have been lost.
        """
        ...

    def renew(self, held: Sequence[Renewal]) -> frozenset[bytes]:
        """Give each claim that still holds its entry (fence, attempt, CLAIMED) a new lease, in one round trip.

        The answer: the attempts that still hold. One whose lease has ended is not renewed.
        """
        ...

    def follow(self, entry: Entry, identity: bytes) -> Following:
        """Register the message *identity* as the follower of the holder of *entry*, if nothing has moved since.

        That is: same fence and attempt, and still CLAIMED, whether its lease has ended or not. There is one follower a
        grant; the next grant has none. The same message may ask again.
        """
        ...

    def poison(self, entry: Entry, message: bytes) -> bool:
        """Set the entry aside as POISONED, and keep *message* with it, if nothing has moved since *entry* was read.

        That is: same fence and attempt, still CLAIMED or still RELEASED, so a holder that completes late is not
        buried. True again, with the message kept once, when it has been poisoned before.
        """
        ...

    def hold(self, digest: bytes, message: bytes) -> None:
        """Keep one more message with an entry that is UNKNOWN or POISONED; the same bytes are kept once."""
        ...

    def held(self, digest: bytes) -> Sequence[bytes]:
        """The messages kept with an entry, in the order they came."""
        ...

    def mark_continued(self, digest: bytes, attempt: bytes) -> None:
        """Note that the continuation of this attempt's outcome went out; another attempt's entry is left alone."""
        ...

    def mark_unknown(self, digest: bytes, attempt: bytes) -> None:
        """Make this attempt's entry UNKNOWN, whatever its state; nobody's else."""
        ...

    def read(self, digest: bytes) -> Entry | None:
        """The entry as committed now."""
        ...

    def find(self, key: str) -> Sequence[Entry]:
        """Entries with this readable key; a hex digest finds its entry too. For people, need not be fast."""
        ...

    def entries(self, *, state: State | None, limit: int, after: bytes | None = None) -> Sequence[Entry]:
        """Up to *limit* entries in the order of their digests, after the digest *after*."""
        ...

    def counts(self) -> Mapping[State, int]:
        """How many entries there are in each state."""
        ...

    def begin_step(self, granted: Granted, name: str, *, holds: bool) -> bool:
        """Record that this claim's holder begins a step; False means fenced.

        A start without an end that an earlier attempt left is replaced; one that has ended must not be begun again.
        True again when this attempt has begun it before: the answer may have been lost. The start is committed, and
        an attempt that takes the effect over afterwards sees it.
        """
        ...

    def end_step(self, granted: Granted, name: str, end: End) -> bool:
        """Record the end of a step that this attempt began; False means fenced. True again when it has ended."""
        ...

    def cancel_step(self, granted: Granted, name: str) -> bool:
        """Take the start of a step back: it did nothing. False means fenced."""
        ...

    def steps(self, digest: bytes) -> Sequence[Step]:
        """The steps of an effect, in the order in which they began. They live as long as its entry."""
        ...

    def rescue(self, limit: int) -> Sequence[Entry]:
        """Release claims whose lease ended more than one lease ago, and count a death for each (rule 17).

        Those of which `domain.steps.waits_for_a_person` says so become UNKNOWN instead. Up to *limit*; by fence;
        never one whose holder still has a transaction open on it. Answers the entries as they stood before.
        """
        ...

    def ping(self) -> None:
        """Return if the store answers and its tables are usable; else raise LedgerUnavailable or SchemaMissing."""
        ...

    def create_schema(self) -> None:
        """Create what is missing; what is there stays."""
        ...

    def close(self) -> None:
        """Give all connections back; the store may be used again after."""
        ...


class SchedulingLedger(LedgerStore, Protocol):
    """A ledger whose store can hold terms and ticks too."""

    @property
    def schedule(self) -> ScheduleStore:
        """Where its terms and ticks are."""
        ...


class Work(Protocol):
    """One open transaction of a `Transactional` body. Not shared between threads.

    The life: `enter`, then the body, then `finish` and `commit`, or `rollback`. After `rollback` or an error of
    `commit` nothing of the body is left, unless the error is `CommitUncertain`.
    """

    @property
    def session(self) -> Any:
        """The SQLAlchemy session that is part of this transaction."""
        ...

    @property
    def connection(self) -> Any:
        """The SQLAlchemy connection of this transaction."""
        ...

    @property
    def is_broken(self) -> bool:
        """Whether the connection to the ledger was lost; what the body did is gone then."""
        ...

    def enter(self) -> Granted | Refused:
        """Take the key's try-lock and insert the entry, or (with a committed grant) take the lock only.

        One statement for a first delivery. Refused(None): somebody holds the lock. Refused(entry): an entry stands.
        """
        ...

    def send(self, message: Message) -> None:
        """Let *message* be stored with this transaction. One that is sent in a savepoint is undone with it."""
        ...

    def hand_over(self, dispatch: Callable[[Sequence[Stored]], None]) -> Sequence[Stored]:
        """After `commit`: what was stored and is to be sent now.

        Nothing where the commit is somebody else's; there *dispatch* is called after that one, if it can be known.
        """
        ...

    def finish(self, outcome: Outcome) -> bool:
        """Store what was sent, in one statement, and write the outcome as the last one; False means fenced.

        A first delivery that completed with None (kept, not handed over) needs none: its entry was inserted as
        completed. Raises TransactionEscaped when the body ended or left the transaction.
        """
        ...

    def meaning(self, error: BaseException) -> BaseException:
        """What an error out of the body means: TransactionEscaped where it was refused a way out; else itself."""
        ...

    def undo_body(self) -> None:
        """Roll back to just after `enter`, so that a remembered failure can be written (rule 8)."""
        ...

    def commit(self) -> None:
        """Commit all of it together.

        A connection lost here is asked about on a new one, under the same lock, by key and attempt (rule 10):
        committed after all, and it returns; not committed, and LedgerUnavailable is raised; not to be known in
        time, and CommitUncertain is raised. Deadlocks and serialization failures are raised as Conflict.
        """
        ...

    def rollback(self) -> None:
        """Undo all of it; never raises."""
        ...


class Conflict(Exception):
    """The database chose this transaction as the one to be run again (rule 13)."""


class TransactionalStore(LedgerStore, Protocol):
    """A ledger whose entries can commit together with the work."""

    def work(
        self, claim: Claim, *, granted: Granted | None, allow_escape: bool, keep: float | None
    ) -> AbstractContextManager[Work]:
        """Open the transaction of one body on this thread; leaving the context rolls back what was not committed."""
        ...

    def nested(
        self, outer: Work, claim: Claim, *, granted: Granted | None, keep: float | None
    ) -> AbstractContextManager[Work]:
        """Open the work of a guarded call made inside *outer*'s body, as a savepoint of the same transaction."""
        ...

    def holder(self, digest: bytes) -> str | None:
        """Which session of the database holds the key now, in words for a person.

        None when nobody does, and where the database cannot tell.
        """
        ...

    def is_conflict(self, error: BaseException) -> bool:
        """Tell whether an error out of a body means that its transaction is to be run again (rule 13)."""
        ...

    def is_lost(self, error: BaseException) -> bool:
        """Tell whether an error out of a body means that the connection to the ledger is gone."""
        ...

    def fenced(self, granted: Granted, *, key: str) -> AbstractContextManager[Any]:
        """Open a transaction that commits at the end of the context only while *granted* holds its entry.

        Gives a SQLAlchemy session. Raises FenceRefused, with nothing committed, when the claim was lost; what the
        context raises rolls it back. A connection lost at the commit is CommitUncertain.
        """
        ...

    def exchange(self, claim: Claim | None, granted: Granted | None, *, sessions: Any = None) -> ExchangeWork:
        """The transaction of one HTTP request, under a committed claim if it has one; begins when it is first used.

        *sessions*: what makes its asynchronous session, an `async_sessionmaker` or `AsyncEngine` of the ledger's
        database.
        """
        ...

    def unguarded(self) -> AbstractContextManager[Any]:
        """A session of the ledger's database that nothing watches; what it left open commits at the end.

        What the context raises rolls it back. A registry gives the user's own session, which stays open.
        """
        ...

    @property
    def shares_session(self) -> bool:
        """Whether bodies write through a session of the user's own, so that its commit is ours to see to."""
        ...

    @property
    def outbox(self) -> OutboxStore:
        """Where the messages of its transactions wait."""
        ...


Sleep = Callable[[float], None]


def is_transactional(store: LedgerStore) -> TypeGuard[TransactionalStore]:
    """Tell whether entries of *store* can commit together with the work."""
    return hasattr(store, "work")


def history_of(store: LedgerStore) -> HistoryStore | None:
    """Where *store* keeps what was not ordinary; None where it does not."""
    found: HistoryStore | None = getattr(store, "history", None)
    return found


def survey_of(store: LedgerStore) -> SurveyStore | None:
    """What *store* can say about itself in short; None where it cannot."""
    found: SurveyStore | None = getattr(store, "survey", None)
    return found


def is_scheduling(store: LedgerStore) -> TypeGuard[SchedulingLedger]:
    """Tell whether *store* can hold terms and ticks."""
    return hasattr(store, "schedule")


def is_storing(store: TickStore) -> TypeGuard[StoringTickStore]:
    """Tell whether ticks and their messages can commit together in *store*."""
    return hasattr(store, "claim_and_store")


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a message says of itself; *due* is seconds since the epoch, None for one without an eta."""

    task: str
    task_id: str
    due: float | None


class Deliveries(Protocol):
    """What one worker got from a broker with a visibility timeout and has not acknowledged. Safe from any thread.

    What asks the broker raises BrokerAway when it does not answer; then nothing is known to have happened.
    """

    def held(self) -> Mapping[str, Any]:
        """The messages by their delivery tags; asks nobody."""
        ...

    def describe(self, message: Any) -> Described:
        """What *message* says of itself."""
        ...

    def renew(self, tags: Sequence[str]) -> frozenset[str]:
        """Start the timeout of these deliveries anew, in one round trip where that is possible.

        The answer: those that the broker does not count as delivered any more. They are not brought back.
        """
        ...

    def sweep(self) -> None:
        """Give back what workers held that are gone, where the broker leaves that to its clients."""
        ...
