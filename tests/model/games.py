"""What one run of the model plays: policy, broker, how many of each fault, and which rules stand."""

from dataclasses import dataclass, replace
from enum import Enum, auto

from tests.model.brokers import Broker
from tests.model.worlds import Budget


class Rule(Enum):
    """A rule of the protocol that a game may go without."""

    FENCE = auto()
    """Completing and releasing are conditional on the holder: its fence and its attempt."""
    ATTEMPT = auto()
    """They are conditional on the attempt, not on the fence alone."""
    FENCES_GROW = auto()
    """A fence is at least the store's microseconds."""
    COPY_BEFORE_ACK = auto()
    """The copy of a delivery that is put off is out before the delivery is acknowledged."""
    COPY_IS_CONFIRMED = auto()
    """The broker has said that it has the copy."""
    COPY_HAS_NO_EXPIRY = auto()
    """A copy does not expire."""
    FENCED_DEFERS = auto()
    """A holder that finds itself fenced puts its delivery off."""
    REENTRY_BY_FENCE = auto()
    """A retry re-enters by the fence of its attempt, not because it has its task's id."""
    RETRY_IS_SENT_FIRST = auto()
    """A retry's message is out before anything about it is stored, and no copy counts as stale."""
    RETRY_IS_SENT_OUTSIDE = auto()
    """A retry's message is sent outside the transaction that is rolled back."""
    OWN_IS_DEFERRED = auto()
    """A busy delivery of the holder's own message is put off, whatever the policy says of others."""
    UNFINISHED_GOES_ON = auto()
    """A delivery whose effect is done and whose continuation may not have gone out goes on from there."""
    LINKS_ARE_FROZEN = auto()
    """A continuation that is sent twice has the same ids."""
    REPLACED_IS_CONTINUED = auto()
    """An effect that ended by `replace` counts as continued, and its result is the replacement's."""
    HANDED_ON_IS_RELEASED = auto()
    """An effect that is replaced under its own key is released to the replacement."""
    RESCUER = auto()
    """Claims whose lease ended long ago are released, message or none."""
    SESSIONS_END = auto()
    """The database ends the session of a machine that vanished."""
    SUCCESS_COMES_BACK = auto()
    """A child that dies after its stored SUCCESS does not have its message acknowledged."""
    FAILED_DISPATCH_COMES_BACK = auto()
    """A continuation that cannot be dispatched gives the message back, and is no failure of the work."""
    CONTINUED_RESULT_IS_KEPT = auto()
    """The result of a message that has a continuation is kept, whatever its size."""
    COMMIT_IS_ASKED_UNDER_LOCK = auto()
    """Whether a lost COMMIT took place is asked under the key's lock."""
    SILENCE_COUNTS_ALL = auto()
    """Where a broker does not flag what it repeats, every delivery commits a claim first."""
    AWAY_DEFERS = auto()
    """A delivery whose ledger is away is put off as a new message, not given back."""
    ONE_IDEMPOTENCY_KEY = auto()
    """What the outside is shown is derived from the effect's key alone."""
    DONE_IS_NOT_POISONED = auto()
    """An entry is poisoned only while it is claimed or released."""
    FENCED_FAILURE_DEFERS = auto()
    """A holder that fails and finds itself fenced puts its delivery off."""
    FENCED_ERROR_DEFERS = auto()
    """So does one whose body raises an error of ours."""
    FENCED_IGNORE_DEFERS = auto()
    """A holder whose body ends by `Ignore`, and that is fenced or finds the ledger away, puts its delivery off."""
    ERRBACKS_KEEP_RESULT = auto()
    """The result of a message that has error links only is kept, whatever its size."""
    LIVING_IS_NOT_POISONED = auto()
    """An entry is not poisoned while the transaction of its holder is open."""
    BACKEND_AWAY_DEFERS = auto()
    """A result that the backend does not take is left to a copy; the delivery is not given back to come at once."""
    LIMIT_COMES_BACK = auto()
    """A hard time limit that strikes after the settlement, or strikes a fenced holder, gives the message back."""


NOT_YET = frozenset({Rule.LIMIT_COMES_BACK})
"""Rules that the product does not go by today; `test_gaps` shows what that costs, and looks at the product."""


class Ending(Enum):
    """How a body ends, if nothing befalls it."""

    RESULT = auto()
    REMEMBERED = auto()
    """By a failure that the policy remembers."""
    IGNORE = auto()
    REPLACE = auto()
    REPLACE_SAME_KEY = auto()


NO_FAULTS = Budget()


@dataclass(frozen=True, slots=True, kw_only=True)
class Game:
    """One configuration; *budget* says how many of each fault may befall it, in any order and place.

    *messages*: how many ids share the key. *continues*: they have a link. *chord*: they are parts of a chord.
    *errbacks*: they have an error link. *large*: the result is larger than the ledger keeps. *skips*: the policy is
    ``on_busy="skip"``. *deadly*: the body kills its worker each time. *most*: ``max_takeovers``, 0 for no limit.
    *vanishes*: a killed worker's machine is gone, its sessions linger. *lost_retry*: Celery sends a retry for a lost
    child. *late_limits*: hard time limits strike after the settlement, too. *ours*: bodies fail by errors of ours.
    *off*: rules that do not stand here.
    """

    broker: Broker
    transactional: bool
    budget: Budget = NO_FAULTS
    workers: int = 2
    messages: int = 1
    ending: Ending = Ending.RESULT
    continues: bool = True
    chord: bool = False
    errbacks: bool = False
    large: bool = False
    skips: bool = False
    deadly: bool = False
    most: int = 0
    vanishes: bool = False
    lost_retry: bool = False
    late_limits: bool = False
    ours: bool = False
    off: frozenset[Rule] = NOT_YET

    def without(self, *rules: Rule) -> "Game":
        """The same game with these rules taken out."""
        return replace(self, off=self.off | frozenset(rules))

    def with_rules(self, *rules: Rule) -> "Game":
        """The same game with these rules put in."""
        return replace(self, off=self.off - frozenset(rules))

    def keeps(self, rule: Rule) -> bool:
        """Tell whether *rule* stands."""
        return rule not in self.off
