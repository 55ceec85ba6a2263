"""One HTTP request and its answer: claimed before the endpoint runs, settled before the first byte leaves.

The claim is committed first, so a twin is told at once, and what is left of a process that died is a claim whose lease
ends. An endpoint that works in the exchange's own transaction has its work, its messages and the record of its answer
in one commit; the lease is not renewed any more then, the open transaction says that somebody is at work. An endpoint
with a transaction of its own gets the weaker form: the answer is recorded after its commit, and a death in between
leaves work whose repetition runs again.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

from effectonce import crashpoints
from effectonce.domain.claims import Claim, Granted, Outcome, Refused, Verdict, judge
from effectonce.domain.leases import Lease
from effectonce.domain.outbox import Stored
from effectonce.errors import EffectOnceError, FenceRefused, LedgerUnavailable, LedgerUnsuitable
from effectonce.events import Emit, Event, Name
from effectonce.ports import LedgerStore, is_transactional
from effectonce.ports.exchanges import ExchangeWork
from effectonce.runtime.asking import ask_for_claim
from effectonce.runtime.keeper import Keeper

INSIST: Final = 3.0
"""Seconds for which a ledger that is away is asked to record what has taken place."""

Dispatch = Callable[[Sequence[Stored]], None]


class Exchange:
    """One attempt at a request: `begin`, perhaps `open`, then `settle` or `let_go`; `close` in any case.

    Without *claim* it is a request without a key: a transaction, if the endpoint wants one, and nothing recorded.
    """

    def __init__(
        self,
        claim: Claim | None,
        store: LedgerStore,
        keeper: Keeper | None,
        *,
        dispatch: Dispatch,
        emit: Emit,
        sessions: Any = None,
    ) -> None:
        self.claim = claim
        self.work: ExchangeWork | None = None
        self._store = store
        self._keeper = keeper
        self._dispatch = dispatch
        self._emit = emit
        self._sessions = sessions
        self._granted: Granted | None = None
        self._holding = ExitStack()

    @property
    def is_held(self) -> bool:
        """Whether a claim stands that nothing has settled yet."""
        return self._granted is not None

    def begin(self) -> Verdict | None:
        """Claim; answers what stands in the way. Raises LedgerUnavailable: then nothing may run."""
        claim = self.claim
        if claim is None or self._keeper is None:
            return None
        asked = time.monotonic()
        answer = ask_for_claim(self._store, claim)
        if isinstance(answer, Refused):
            verdict = judge(answer, claim)
            self._happened(Name.CLAIM_REFUSED, state=type(verdict).__name__.lower())
            return verdict
        self._granted = answer
        lease = Lease.asked(asked, length=claim.lease)
        self._holding.enter_context(self._keeper.holding(answer, lease=lease, key=claim.key))
        self._happened(Name.CLAIM_TAKEN_OVER if answer.takeover else Name.CLAIM_GRANTED, deaths=answer.deaths)
        crashpoints.crash_point("body.before")
        return None

    def open(self) -> ExchangeWork:
        """The transaction of this request, the same one each time.

        Raises LedgerUnsuitable where the ledger is no SQL database, FenceRefused when the claim was lost.
        """
        if self.work is None:
            store = self._store
            if not is_transactional(store):
                facts = {"ledger": store.name, "policy": "once.http.session()", "task": "http"}
                raise LedgerUnsuitable(**facts, reason="it is not a SQL database")
            work = store.exchange(self.claim, self._granted, sessions=self._sessions)
            work.open()
            self.work = work
            self._holding.close()
        return self.work

    def settle(self, outcome: Outcome | None) -> None:
        """Commit the work with *outcome*, or, where there is no transaction, record the outcome alone.

        Raises FenceRefused when another attempt has the effect; LedgerUnavailable, CommitUncertain and Conflict as
        the store does. Of a transaction nothing is left then, unless it says uncertain.
        """
        crashpoints.crash_point("body.after")
        if self.work is not None:
            self._commit(self.work, outcome)
        elif self._granted is not None and outcome is not None:
            self._record(self._granted, outcome)
        self._granted = None
        self._holding.close()
        self._happened(Name.EFFECT_COMPLETED)

    def _record(self, granted: Granted, outcome: Outcome) -> None:
        """Write the outcome of what has taken place already; the claim is never let go after that.

        A ledger that is away is asked for a while. Where it stays away the claim stands until its lease ends, and then
        the request may run again.
        """
        self._granted = None
        end = time.monotonic() + INSIST
        try:
            while not self._is_recorded(granted, outcome, last=time.monotonic() > end):
                time.sleep(0.1)
        finally:
            self._holding.close()

    def _is_recorded(self, granted: Granted, outcome: Outcome, *, last: bool) -> bool:
        try:
            if self._store.complete(granted, outcome):
                return True
        except LedgerUnavailable:
            if last:
                raise
            return False
        raise self._lost(granted)

    def _commit(self, work: ExchangeWork, outcome: Outcome | None) -> None:
        try:
            finished = work.finish(outcome)
            if finished:
                work.commit()
        except BaseException:
            self.undo()
            raise
        if not finished:
            self.undo()
            raise self._lost(self._granted)
        stored = work.hand_over(self._dispatch)
        self.work = None
        if stored:
            self._dispatch(stored)

    def undo(self) -> None:
        """Roll the transaction back; the claim stands."""
        work, self.work = self.work, None
        if work is not None:
            work.rollback()

    def let_go(self) -> None:
        """Roll back, and let the key go: the next request with it runs. What cannot be written, the lease ends."""
        self.undo()
        claim, granted, self._granted = self.claim, self._granted, None
        if claim is not None and granted is not None:
            with suppress(EffectOnceError):
                self._store.release(granted, retries=0, reset=True, keep=claim.keep)
                self._happened(Name.EFFECT_RELEASED)
        self._holding.close()

    def _lost(self, granted: Granted | None) -> FenceRefused:
        claim = self.claim
        assert claim is not None, "only a claim can be lost"  # noqa: S101 - a mistake of ours
        self._happened(Name.FENCE_REFUSED)
        fence = 0 if granted is None else granted.fence
        return FenceRefused(key=claim.key, fence=fence, attempt=claim.attempt.hex())

    def _happened(self, name: Name, **facts: Any) -> None:
        if self.claim is not None:
            fence = 0 if self._granted is None else self._granted.fence
            attempt = self.claim.attempt.hex()
            self._emit(Event(name=name, key=self.claim.key, task="http", attempt=attempt, fence=fence, facts=facts))
