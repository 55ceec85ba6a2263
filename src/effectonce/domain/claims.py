"""Who may carry out an effect, and what a delivery does that may not.

An effect has at most one entry in a ledger. A claim is an attempt's right to carry it out. Each grant has a larger
fence than the one before, so that whatever an earlier holder still does can be refused. A ledger answers a claim
by a grant, or by the entry that stands in the way; `judge` then says what the delivery does about it.

`admit` is the one statement of when a claim is granted. SQL and Lua say the same in their own words, and the
conformance suite holds them to it. Seconds are those of the ledger's own clock: an entry says how long its lease
still has, never when it ends, so no two clocks are compared.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import assert_never


class State(IntEnum):
    """How an entry stands; the numbers are stored."""

    CLAIMED = 1
    COMPLETED = 2
    FAILED = 3
    RELEASED = 4
    UNKNOWN = 5
    POISONED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an attempt asks of a ledger.

    *digest* (16 bytes) names the effect, *key* is its readable form. *attempt* (8 random bytes) names this attempt.
    *identity* (16 bytes) names the message: id, task name and nesting, since a replaced task keeps its id.
    *lease* and *keep* are seconds; *keep* is None for ever. *reenter* is the fence that a retry brings along.
    *time_limit*: seconds after which Celery kills the body, None where it does not.
    *recurs*: the effect is carried out again and again, so another message's finished entry does not stand in its way.
    *holds*: an effect whose holder dies is held for a person, unless its steps tell that nothing is unknown (rule 18).
    """

    digest: bytes
    key: str
    attempt: bytes
    identity: bytes
    task_id: str
    fingerprint: bytes
    lease: float
    max_takeovers: int
    keep: float | None = None
    retries: int = 0
    reenter: int | None = None
    time_limit: float | None = None
    recurs: bool = False
    holds: bool = False

    @property
    def longest_silence(self) -> float | None:
        """Seconds that a holder may leave its transaction alone; a longer silence is that of a frozen one (rule 2)."""
        return None if self.time_limit is None else self.time_limit + self.lease


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An effect as its ledger knows it, at the instant of the answer.

    *lease_left*: seconds until the lease ends, negative when it has ended. *deaths*: holders that are known to have
    died. *attempts*: bodies begun under a committed claim. *continued*: its continuation is known to have gone out.
    *handed_over*: it ended by `Ignore`, so its result is the replacement's. *result*: as encoded, None if not kept
    or None itself (*result_kept* tells). *since*: the ledger's clock, epoch seconds, when this state began.
    *unsent*: False where it was seen that nothing is left in the outbox of what its body sent.
    """

    digest: bytes
    key: str
    state: State
    fence: int
    attempt: bytes
    identity: bytes
    task_id: str
    fingerprint: bytes
    lease_left: float
    deaths: int
    attempts: int
    retries: int
    continued: bool
    handed_over: bool
    result: bytes | None
    result_kept: bool
    since: float
    unsent: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The claim is ours. *takeover*: its holder was gone. *attempts* counts this one."""

    digest: bytes
    attempt: bytes
    fence: int
    takeover: bool
    deaths: int
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The claim is not ours. *entry* is None when somebody holds the key and has committed nothing yet."""

    entry: Entry | None


def next_fence(previous: int, micros: int) -> int:
    """Grow a fence: never back, also when the clock or the ledger was set back (rule 1)."""
    return max(previous + 1, micros)


def admit(entry: Entry | None, claim: Claim, micros: int) -> Granted | Refused:
    """Say whether a claim is granted, *micros* being the ledger's clock in microseconds."""
    if entry is None:
        return _grant(claim, fence=next_fence(0, micros), takeover=False, deaths=0, attempts=1)
    if is_repeated(entry, claim):
        return _grant(claim, fence=entry.fence, takeover=entry.deaths > 0, deaths=entry.deaths, attempts=entry.attempts)
    fence, attempts = next_fence(entry.fence, micros), entry.attempts + 1
    if is_reentry(entry, claim):
        return _grant(claim, fence=fence, takeover=False, deaths=entry.deaths, attempts=attempts)
    if entry.state is State.RELEASED and entry.deaths < claim.max_takeovers:
        return _grant(claim, fence=fence, takeover=False, deaths=entry.deaths, attempts=attempts)
    if is_recurrence(entry, claim):
        return _grant(claim, fence=fence, takeover=False, deaths=0, attempts=attempts)
    if is_takeover(entry, claim):
        return _grant(claim, fence=fence, takeover=True, deaths=entry.deaths + 1, attempts=attempts)
    return Refused(entry=entry)


def is_repeated(entry: Entry, claim: Claim) -> bool:
    """The attempt holds it already and asks again, its first answer lost on the way: never its own rival."""
    return entry.state is State.CLAIMED and entry.attempt == claim.attempt and entry.lease_left > 0


def is_open(entry: Entry, claim: Claim) -> bool:
    """Tell whether a claim on this standing entry would be granted: it was let go, or its holder is gone."""
    return isinstance(admit(entry, claim, 0), Granted)


def is_reentry(entry: Entry, claim: Claim) -> bool:
    """A retry goes on only while the entry still holds the fence of the attempt that sent it (rule 5)."""
    return entry.state is State.CLAIMED and claim.reenter is not None and entry.fence == claim.reenter


def is_recurrence(entry: Entry, claim: Claim) -> bool:
    """Another message's run has ended, and this effect is to be carried out each time; its own copy is a duplicate."""
    ended = entry.state in {State.COMPLETED, State.FAILED}
    return claim.recurs and ended and entry.identity != claim.identity


def is_takeover(entry: Entry, claim: Claim) -> bool:
    """The holder's lease has ended, the arguments are the same, and it has not killed too many (rules 3, 12)."""
    return (
        entry.state is State.CLAIMED
        and entry.lease_left <= 0
        and same_arguments(entry, claim)
        and entry.deaths + 1 < claim.max_takeovers
    )


def same_arguments(entry: Entry, claim: Claim) -> bool:
    """Tell whether both fingerprints agree; an empty one was not taken, and agrees with all."""
    return not entry.fingerprint or not claim.fingerprint or entry.fingerprint == claim.fingerprint


def _grant(claim: Claim, *, fence: int, takeover: bool, deaths: int, attempts: int) -> Granted:
    return Granted(
        digest=claim.digest,
        attempt=claim.attempt,
        fence=fence,
        takeover=takeover,
        deaths=deaths,
        attempts=attempts,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an attempt ended for good; what a ledger writes when it completes a claim.

    *result* is encoded; *kept* tells an unkept result from None. *handed_over*: by `Ignore`. *continued*: nothing
    has to go out after it, or its dispatch is nobody's duty. *keep*: seconds the entry lives on, None for ever.
    """

    state: State
    result: bytes | None = None
    kept: bool = True
    handed_over: bool = False
    continued: bool = False
    keep: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The effect took place, or failed for good: give its outcome back, and go on from there."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """This very message was carried out and continued: end it without touching anything."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Reused:
    """The key stands for other arguments."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Somebody may be at work. *wait*: seconds of its lease, None when it has none. *own*: by this very message.

    *entry*: the holder's, where it is known.
    """

    wait: float | None
    own: bool
    entry: Entry | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """Its holders died too often: set it aside for a person."""

    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """It waits for a person."""

    entry: Entry


Verdict = Replay | Continued | Reused | Busy | Poison | Held


def judge(refused: Refused, claim: Claim) -> Verdict:
    """Say what a delivery does whose claim was refused (rules 4, 6, 7, 8 and 12)."""
    entry = refused.entry
    if entry is None:
        return Busy(wait=None, own=False)
    own = entry.identity == claim.identity
    match entry.state:
        case State.COMPLETED | State.FAILED:
            if own:
                return Continued(entry=entry) if entry.continued else Replay(entry=entry)
            return Replay(entry=entry) if same_arguments(entry, claim) else Reused(entry=entry)
        case State.CLAIMED:
            return _judge_claimed(entry, claim, own=own)
        case State.RELEASED:
            if entry.deaths >= claim.max_takeovers:
                return Poison(entry=entry)
            return Busy(wait=0.0, own=own)
        case State.UNKNOWN | State.POISONED:
            return Held(entry=entry)
    assert_never(entry.state)


def _judge_claimed(entry: Entry, claim: Claim, *, own: bool) -> Verdict:
    if not own and not same_arguments(entry, claim):
        return Reused(entry=entry)
    if entry.lease_left <= 0 and entry.deaths + 1 >= claim.max_takeovers:
        return Poison(entry=entry)
    return Busy(wait=max(entry.lease_left, 0.0), own=own, entry=entry)
