"""An attempt whose effect is outside the ledger's database.

The claim is committed before the body and settled after it, each on condition of the fence; the keeper renews it
in between. What a crash leaves: the claim, until its lease ends; then the next delivery takes it over and shows the
outside the same idempotency key. A settlement that the ledger cannot take is tried again while the lease is
trusted; after that the effect has taken place and its entry does not say so, and the next delivery carries it out
once more under the same idempotency key.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from effectonce import crashpoints
from effectonce.domain.claims import Granted, Outcome, Refused, State
from effectonce.domain.leases import Lease
from effectonce.domain.steps import Done, OnUnknown
from effectonce.errors import EffectOnceError, FenceRefused, LedgerUnavailable, LedgerUnsuitable
from effectonce.events import Name
from effectonce.ports import LedgerStore, is_transactional
from effectonce.runtime.asking import ask_for_claim
from effectonce.runtime.keeper import Held, Keeper
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.signals import Away, Fenced, Raised, Remembered, Undecided, signal_of
from effectonce.runtime.steps import Steps
from effectonce.runtime.turns import take_turn


class LeasedAttempt:
    """One attempt at a `Leased` effect: `run`, then one of the endings, then `close`."""

    def __init__(self, plan: Plan, store: LedgerStore, keeper: Keeper) -> None:
        self._plan = plan
        self._store = store
        self._keeper = keeper
        self._holding = ExitStack()
        self._held: Held | None = None
        self._steps: Steps | None = None
        self.granted: Granted | None = None
        self._unwritten: Outcome | None = None
        self.result: Any = None
        self.is_done = False

    def run(self, body: Callable[[], Any]) -> Any:
        """Claim, run *body*, and settle what it returned; what it raises is left for an ending."""
        take_turn(self._plan, self._claim)
        done = self._look_back()
        if done is not None:
            return self._completed(done.result)
        crashpoints.crash_point("body.before")
        try:
            result = body()
        except FenceRefused as error:
            raise Fenced from error
        except EffectOnceError as error:
            signal = signal_of(error)
            if isinstance(signal, Raised) and self._is_unknown:
                signal = Undecided(None)
            raise signal from error
        except Exception as error:
            self._remember(error)
            if not isinstance(error, self._plan.controls) and self._is_unknown:
                raise Undecided(None) from error
            raise
        crashpoints.crash_point("body.after")
        return self._completed(result)

    def _look_back(self) -> Done | None:
        try:
            return self._own_steps.look_back()
        except LedgerUnavailable as error:
            raise Away(error) from error

    @property
    def _own_steps(self) -> Steps:
        assert self._steps is not None, "the claim was not granted"  # noqa: S101 - a mistake of ours
        return self._steps

    @property
    def _is_unknown(self) -> bool:
        """Whether a person must judge what became of an attempt that ends here without an outcome (rule 18)."""
        return self._steps is not None and self._steps.are_unknown

    def step(
        self, name: str, act: Callable[[], Any], *, on_unknown: OnUnknown | None, not_done: tuple[type[Exception], ...]
    ) -> Any:
        """Carry out one step of the body."""
        return self._own_steps.run(name, act, on_unknown=on_unknown, not_done=not_done)

    def transaction(self) -> AbstractContextManager[Any]:
        """A transaction of the ledger's database that commits only while the claim holds."""
        store, granted, plan = self._store, self.granted, self._plan
        if granted is None or not is_transactional(store):
            facts = {"ledger": store.name, "policy": "effect.transaction()", "task": plan.delivery.task}
            raise LedgerUnsuitable(**facts, reason="it is not a SQL database")
        return store.fenced(granted, key=plan.claim.key)

    def _completed(self, result: Any) -> Any:
        self._complete(result)
        self.result, self.is_done = result, True
        self._plan.happened(Name.EFFECT_COMPLETED, fence=self.fence)
        return result

    def _remember(self, error: Exception) -> None:
        if self._plan.is_remembered(error):
            self._end(self._plan.failed(error))
            self._plan.happened(Name.EFFECT_FAILED, fence=self.fence, error=type(error).__name__)
            raise Remembered(error) from error

    def _complete(self, result: Any) -> None:
        """Settle; a result that cannot be encoded is an error, but the effect has taken place and is done."""
        try:
            encoded, problem = self._plan.encode(result), None
        except EffectOnceError as error:
            encoded, problem = Encoded(payload=None, kept=False), error
        self._end(self._plan.completed(encoded))
        if problem is not None:
            raise Raised(problem) from problem

    @property
    def committed(self) -> Granted | None:
        """The claim that others can see; a retry carries its fence."""
        return self.granted

    @property
    def fence(self) -> int:
        """The fence of this attempt's claim; 0 without one."""
        return self.granted.fence if self.granted else 0

    def ensure_current(self) -> None:
        """Raise FenceRefused when the claim is known to be lost, after asking the store."""
        granted, held = self.granted, self._held
        if granted is not None and held is not None and held.is_trusted(self._plan.clock()):
            entry = self._ask(lambda: self._store.read(granted.digest))
            if entry is not None and entry.fence == granted.fence and entry.attempt == granted.attempt:
                return
        raise FenceRefused(key=self._plan.claim.key, fence=self.fence, attempt=self._plan.claim.attempt.hex())

    def ignored(self) -> None:
        """The body ended by `Ignore`: it is done, or handed to a replacement with the same key."""
        outcome = self._plan.ended_by_ignore()
        if outcome.state is State.RELEASED:
            self._release(retries=self._plan.delivery.retries, reset=False)
        else:
            self._end(outcome)

    def retried(self) -> None:
        """The retry's message is out and confirmed: let the key go to it (rule 5)."""
        self._release(retries=self._plan.delivery.retries + 1, reset=False)

    def failed(self) -> None:
        """The body failed for good: let the key go; a later delivery runs again (rule 8)."""
        self._release(retries=0, reset=True)

    def abandoned(self) -> None:
        """The body was broken off from outside: let the key go, and do not forget its deaths.

        One that ended, and whose outcome the ledger could not take, is not let go: its outcome is tried once more.
        """
        if self._unwritten is None and self._is_unknown:
            self.undecided(None)
        elif self._unwritten is None:
            self._release(retries=self._plan.delivery.retries, reset=False)
        else:
            self._end(self._unwritten)
            self._plan.happened(Name.EFFECT_COMPLETED, fence=self.fence)

    def undecided(self, step: str | None) -> None:
        """Leave the effect to a person: nobody knows what became of *step*, or of a body that recorded none."""
        granted = self.granted
        if granted is None:
            return
        self._ask(lambda: self._store.mark_unknown(granted.digest, granted.attempt))
        entry = self._ask(lambda: self._store.read(granted.digest))
        if entry is None or entry.state is not State.UNKNOWN or entry.attempt != granted.attempt:
            self._plan.happened(Name.FENCE_REFUSED, fence=granted.fence)
            raise Fenced
        self._holding.close()
        self._plan.happened(Name.EFFECT_UNKNOWN, fence=granted.fence, step=step or "")

    def close(self) -> None:
        """Stop renewing."""
        self._holding.close()

    def _claim(self) -> None:
        asked = self._plan.clock()
        answer = self._ask(lambda: ask_for_claim(self._store, self._plan.claim))
        if isinstance(answer, Refused):
            raise self._plan.refused(answer)
        self.granted = answer
        lease = Lease.asked(asked, length=self._plan.claim.lease)
        self._held = self._holding.enter_context(self._keeper.holding(answer, lease=lease, key=self._plan.claim.key))
        self._steps = Steps(self._plan, self._store, answer, self._held)
        self._plan.was_granted(answer)

    def _end(self, outcome: Outcome) -> None:
        self._unwritten = outcome
        self._settle(lambda granted: self._store.complete(granted, outcome))
        self._unwritten = None

    def _release(self, *, retries: int, reset: bool) -> None:
        keep = self._plan.claim.keep
        self._settle(lambda granted: self._store.release(granted, retries=retries, reset=reset, keep=keep))
        self._plan.happened(Name.EFFECT_RELEASED, fence=self.fence, retries=retries)

    def _settle(self, write: Callable[[Granted], bool]) -> None:
        granted = self.granted
        if granted is None:
            return
        if not self._insist(lambda: write(granted)):
            self._plan.happened(Name.FENCE_REFUSED, fence=granted.fence)
            raise Fenced
        self._holding.close()

    def _insist(self, write: Callable[[], bool]) -> bool:
        """Write while the lease is trusted: the effect has taken place, and only the ledger does not know yet."""
        pause = 0.05
        while True:
            try:
                return write()
            except LedgerUnavailable as error:
                held = self._held
                if held is None or not held.is_trusted(self._plan.clock()):
                    raise Away(error) from error
            self._plan.sleep(pause)
            pause = min(pause * 2, 1.0)

    @staticmethod
    def _ask(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except LedgerUnavailable as error:
            raise Away(error) from error
