"""An attempt that is only watched: the mode ``observe``.

It is claimed and settled in the ledger as if its policy held, so that the ledger knows what was carried out and a later
call is seen as what it is. But the body runs whatever the ledger says: a refusal is counted as a sighting, and a ledger
that does not answer is a warning. Nothing waits, nothing is put off, and no error of ours comes out.
"""

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from effectonce.domain.claims import Outcome, Refused, State, judge
from effectonce.domain.leases import Lease
from effectonce.domain.sightings import Sighting, Would, would
from effectonce.errors import EffectOnceError, LedgerUnavailable
from effectonce.events import Name
from effectonce.ports import LedgerStore
from effectonce.runtime.keeper import Keeper
from effectonce.runtime.plan import Encoded, Plan
from effectonce.runtime.unguarded import Opening, UnguardedAttempt

logger = logging.getLogger("effectonce")


class ObservedAttempt(UnguardedAttempt):
    """One attempt that the ledger knows of and has no say in; the endings that matter are written, once each."""

    def __init__(
        self,
        plan: Plan,
        opening: Opening,
        *,
        ledger: Callable[[], tuple[LedgerStore, Keeper]],
        on_duplicate: str,
        on_busy: str,
    ) -> None:
        super().__init__(plan, opening)
        self._ledger = ledger
        self._on_duplicate = on_duplicate
        self._on_busy = on_busy
        self._holding = ExitStack()

    def run(self, body: Callable[[], Any]) -> Any:
        """Claim, run *body* in any case, and write down that it returned."""
        self._asked(self._claim)
        result = super().run(body)
        self._end(lambda: self._plan.completed(self._encoded(result)))
        return result

    def ignored(self) -> None:
        """The body ended by `Ignore`."""
        outcome = self._plan.ended_by_ignore()
        if outcome.state is State.RELEASED:
            self._release(retries=self._plan.delivery.retries, reset=False)
        else:
            self._end(lambda: outcome)

    def retried(self) -> None:
        """The body asks for a retry, which is about to be sent: its key is free for it."""
        self._release(retries=self._plan.delivery.retries + 1, reset=False)

    def raised(self, error: Exception) -> None:
        """The body failed: for good, where the policy remembers that."""
        if self._plan.is_remembered(error):
            self._end(lambda: self._plan.failed(error))
        else:
            self._release(retries=0, reset=True)

    def abandoned(self) -> None:
        """The body was broken off."""
        self._release(retries=self._plan.delivery.retries, reset=False)

    def close(self) -> None:
        """Stop renewing."""
        self._holding.close()

    def _claim(self) -> None:
        plan = self._plan
        store, keeper = self._ledger()
        asked = plan.clock()
        answer = store.claim(plan.claim)
        if isinstance(answer, Refused):
            self._saw(store, answer)
            return
        self.granted = answer
        lease = Lease.asked(asked, length=plan.claim.lease)
        self._holding.enter_context(keeper.holding(answer, lease=lease, key=plan.claim.key))

    def _saw(self, store: LedgerStore, answer: Refused) -> None:
        plan = self._plan
        delivery, entry = plan.delivery, answer.entry
        seen = would(
            judge(answer, plan.claim),
            on_duplicate=self._on_duplicate,
            on_busy=self._on_busy,
            must_wait=delivery.continues or delivery.fails_on,
        )
        self._note(store, seen, again=entry is not None and entry.identity == plan.claim.identity)

    def saw(self, seen: Would, *, again: bool) -> None:
        """Count what the policy would have done before the call came so far."""
        self._asked(lambda: self._note(self._ledger()[0], seen, again=again))

    def _note(self, store: LedgerStore, seen: Would, *, again: bool) -> None:
        plan = self._plan
        claim, delivery = plan.claim, plan.delivery
        plan.happened(Name.EFFECT_OBSERVED, would=seen.value, redelivery=again)
        store.see(
            Sighting(
                digest=claim.digest,
                key=claim.key,
                task=delivery.task,
                task_id=delivery.task_id,
                would=seen,
                again=again,
            )
        )

    def _end(self, outcome: Callable[[], Outcome]) -> None:
        granted = self.granted
        if granted is not None:
            self._asked(lambda: self._ledger()[0].complete(granted, outcome()))
            self._let_go()

    def _release(self, *, retries: int, reset: bool) -> None:
        granted, keep = self.granted, self._plan.claim.keep
        if granted is not None:
            self._asked(lambda: self._ledger()[0].release(granted, retries=retries, reset=reset, keep=keep))
            self._let_go()

    def _let_go(self) -> None:
        self.granted = None
        self._holding.close()

    def _encoded(self, result: Any) -> Encoded:
        try:
            return self._plan.encode(result)
        except EffectOnceError:
            return Encoded(payload=None, kept=False)

    def _asked(self, question: Callable[[], object]) -> None:
        """Ask the ledger; what it cannot do is a warning, and changes nothing."""
        try:
            question()
        except LedgerUnavailable as error:
            logger.warning("%s was not observed: the ledger does not answer (%s)", self._plan.claim.key, error)
