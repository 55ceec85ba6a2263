"""One effect in the memory ledger, and how it moves; each function is plain, and holds no lock."""

from dataclasses import dataclass, field, replace

from effectonce.domain.claims import Claim, Entry, Granted, Outcome, State, next_fence
from effectonce.domain.steps import Step

OPEN = frozenset({State.CLAIMED, State.RELEASED})
ENDED = frozenset({State.COMPLETED, State.FAILED})
HELD = frozenset({State.UNKNOWN, State.POISONED})


@dataclass(slots=True)
class Record:
    """An entry, and what only its store knows: when its lease ends, and when it may be forgotten."""

    entry: Entry
    ends: float
    lease: float
    keep: float | None
    forget_at: float | None = None
    messages: list[bytes] = field(default_factory=list)
    steps: dict[str, Step] = field(default_factory=dict)
    holding: bool = False
    follower: bytes | None = None

    def holds(self, attempt: bytes, fence: int) -> bool:
        """Tell whether nobody has had the entry since (rule 1)."""
        return self.entry.attempt == attempt and self.entry.fence == fence


def told(record: Record, now: float) -> Entry:
    """The entry as it is told at *now*."""
    return replace(record.entry, lease_left=record.ends - now)


def claimed(claim: Claim, granted: Granted, now: float, steps: dict[str, Step]) -> Record:
    """The record of a claim that was just granted; steps of earlier attempts stay."""
    entry = Entry(
        digest=claim.digest,
        key=claim.key,
        state=State.CLAIMED,
        fence=granted.fence,
        attempt=claim.attempt,
        identity=claim.identity,
        task_id=claim.task_id,
        fingerprint=claim.fingerprint,
        lease_left=claim.lease,
        deaths=granted.deaths,
        attempts=granted.attempts,
        retries=claim.retries,
        continued=False,
        handed_over=False,
        result=None,
        result_kept=False,
        since=now,
    )
    return Record(
        entry, ends=now + claim.lease, lease=claim.lease, keep=claim.keep, steps=dict(steps), holding=claim.holds
    )


def ended(entry: Entry, outcome: Outcome, now: float) -> Entry:
    """The entry with an outcome."""
    return replace(
        moved(entry, outcome.state, now),
        result=outcome.result if outcome.kept else None,
        result_kept=outcome.kept,
        handed_over=outcome.handed_over,
        continued=outcome.continued,
    )


def taken(entry: Entry, by: bytes, now: float) -> Entry:
    """The entry in the name of a person, under a larger fence."""
    return replace(entry, attempt=by, fence=next_fence(entry.fence, int(now * 1_000_000)))


def moved(entry: Entry, state: State, now: float) -> Entry:
    """The entry in another state, which begins now."""
    return entry if entry.state is state else replace(entry, state=state, since=now)


def is_abandoned(record: Record, now: float) -> bool:
    """Whether its lease ended more than one lease ago."""
    return record.entry.state is State.CLAIMED and now > record.ends + record.lease


def is_begun_by(step: Step | None, granted: Granted) -> bool:
    """Whether there is nothing to write about a start: this attempt has begun it, or it has ended."""
    return step is not None and (step.attempt == granted.attempt or step.ended is not None)


def is_over(record: Record, now: float) -> bool:
    """Whether it may be forgotten."""
    return record.forget_at is not None and now >= record.forget_at


def over_at(now: float, keep: float | None) -> float | None:
    """When something is over that is kept so long from now."""
    return None if keep is None else now + keep


def keep_once(record: Record, message: bytes) -> None:
    """Keep a message, unless it is there."""
    if message not in record.messages:
        record.messages.append(message)
