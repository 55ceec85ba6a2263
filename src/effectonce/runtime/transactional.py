"""An attempt whose entry commits together with its work.

A first delivery takes the key's try-lock and inserts the entry as completed, as the first statement of the work's own
transaction: a crash leaves nothing of either. A delivery that may be a repeat commits a claim first, so that a
message that kills its workers is counted (rule 3); its completing statement is then the last one of the work's
transaction and is conditional on the fence. Nobody renews such a claim: the open transaction is its liveness.

A conflict that the database resolved against this transaction runs all of it again, bounded (rule 13).
"""

import random
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from effectonce import crashpoints
from effectonce.domain.claims import Busy, Granted, Outcome, Refused, is_open
from effectonce.errors import EffectOnceError, FenceRefused, LedgerUnavailable
from effectonce.events import Name
from effectonce.ports import Conflict, TransactionalStore, Work
from effectonce.runtime.asking import ask_for_claim
from effectonce.runtime.plan import Plan
from effectonce.runtime.signals import Away, Fenced, Refusal, Remembered, signal_of
from effectonce.runtime.turns import take_turn

if TYPE_CHECKING:
    from effectonce.domain.outbox import Stored

TURNS = 5
"""How often a body is run before a conflict is raised."""


class _Standing(Exception):
    """An entry stands that nobody holds."""


class TransactionalAttempt:
    """One attempt at a `Transactional` effect: `run`, then one of the endings, then `close`."""

    def __init__(self, plan: Plan, store: TransactionalStore, *, outer: Work | None, allow_escape: bool) -> None:
        self._plan = plan
        self._store = store
        self._outer = outer
        self._allow_escape = allow_escape
        self.committed: Granted | None = None
        self.granted: Granted | None = None
        self.result: Any = None
        self.is_done = False
        self.work: Work | None = None
        self._to_send: Sequence[Stored] = ()

    @property
    def fence(self) -> int:
        """The fence of this attempt; 0 before it was granted."""
        return self.granted.fence if self.granted else 0

    def run(self, body: Callable[[], Any]) -> Any:
        """Claim, run *body* and commit both; what it raises is rolled back and raised again.

        What the body sent is stored with its work, and sent when the transaction and its connection are done with.
        """
        try:
            return self._run(body)
        finally:
            if self._to_send:
                self._plan.dispatch(self._to_send)

    def _run(self, body: Callable[[], Any]) -> Any:
        deadline = self._plan.clock() + self._plan.patience
        if self._plan.delivery.may_repeat:
            take_turn(self._plan, self._commit_claim, deadline=deadline)
        for turn in range(1, TURNS + 1):
            try:
                return self._taken(lambda: self._turn_or_claim(body), deadline)
            except Conflict as conflict:
                if turn == TURNS or self._outer is not None:
                    raise conflict.__cause__ or conflict from None
                self._plan.sleep(random.uniform(0, 0.02 * 2**turn))  # noqa: S311 - jitter, not a secret
        raise AssertionError

    def _taken(self, step: Callable[[], Any], deadline: float) -> Any:
        """A claim that is committed already has had its turn."""
        return take_turn(self._plan, step, deadline=deadline) if self.committed is None else step()

    def ensure_current(self) -> None:
        """Raise FenceRefused when a committed claim was lost; a first delivery holds the lock itself."""
        committed = self.committed
        if committed is None and self.work is not None:
            return
        try:
            entry = self._store.read(self._plan.claim.digest)
        except LedgerUnavailable as error:
            raise Away(error) from error
        mine = entry is not None and committed is not None and entry.fence == committed.fence
        if entry is None or not mine or entry.attempt != self._plan.claim.attempt:
            raise FenceRefused(key=self._plan.claim.key, fence=self.fence, attempt=self._plan.claim.attempt.hex())

    def ignored(self) -> None:
        """The body ended by `Ignore`: `run` has committed that."""

    def retried(self) -> None:
        """The work is rolled back and the retry's message confirmed: let the key go to it (rule 5)."""
        self._release(retries=self._plan.delivery.retries + 1, reset=False)

    def failed(self) -> None:
        """The work is rolled back: let the key go; a later delivery runs again (rule 8)."""
        self._release(retries=0, reset=True)

    def abandoned(self) -> None:
        """The body was broken off from outside: let the key go, and do not forget its deaths."""
        self._release(retries=self._plan.delivery.retries, reset=False)

    def close(self) -> None:
        """Nothing is held outside the transaction."""
        self.work = None

    def _commit_claim(self) -> None:
        answer = self._asked(lambda: ask_for_claim(self._store, self._plan.claim))
        if isinstance(answer, Refused):
            raise self._plan.refused(answer)
        self.committed = self.granted = answer
        self._plan.was_granted(answer)

    def _turn_or_claim(self, body: Callable[[], Any]) -> Any:
        """A first delivery that meets an entry which was let go commits a claim on it, and goes on from there."""
        try:
            return self._turn(body)
        except _Standing:
            self._commit_claim()
            return self._turn(body)

    def _turn(self, body: Callable[[], Any]) -> Any:
        with self._open() as work:
            answer = self._asked(work.enter)
            if isinstance(answer, Refused):
                raise self._refused(work, answer)
            self.granted, self.work = answer, work
            crashpoints.crash_point("body.before")
            try:
                result = body()
            except BaseException as error:
                self._body_raised(work, error)
                raise
            crashpoints.crash_point("body.after")
            self._commit(work, self._completed(result))
        self.result, self.is_done = result, True
        self._plan.happened(Name.EFFECT_COMPLETED, fence=self.fence)
        return result

    def _completed(self, result: Any) -> Outcome:
        try:
            return self._plan.completed(self._plan.encode(result))
        except EffectOnceError as error:
            raise signal_of(error) from error

    def _open(self) -> Any:
        plan = self._plan
        if self._outer is not None:
            return self._store.nested(self._outer, plan.claim, granted=self.committed, keep=plan.claim.keep)
        return self._asked(
            lambda: self._store.work(
                plan.claim, granted=self.committed, allow_escape=self._allow_escape, keep=plan.claim.keep
            )
        )

    def _refused(self, work: Work, answer: Refused) -> Refusal | _Standing:
        work.rollback()
        if self.committed is None:
            if answer.entry is not None and is_open(answer.entry, self._plan.claim):
                return _Standing()
            return self._plan.refused(answer)
        self.abandoned()
        return Refusal(Busy(wait=None, own=False))

    def _body_raised(self, work: Work, error: BaseException) -> None:
        """Commit what the policy counts as an ending; turn what is ours into a signal; else roll back."""
        error = work.meaning(error)
        if isinstance(error, self._plan.ignored):
            self._commit(work, self._plan.ended_by_ignore())
            return
        if isinstance(error, Exception) and self._plan.is_remembered(error):
            work.undo_body()
            self._commit(work, self._plan.failed(error))
            self._plan.happened(Name.EFFECT_FAILED, fence=self.fence, error=type(error).__name__)
            raise Remembered(error) from error
        work.rollback()
        if isinstance(error, FenceRefused):
            raise Fenced from error
        if isinstance(error, EffectOnceError):
            raise signal_of(error) from error
        if self._store.is_conflict(error):
            raise Conflict from error
        if work.is_broken:
            away = LedgerUnavailable(ledger=self._store.name, reason="the connection broke in the body")
            raise Away(away) from error

    def _commit(self, work: Work, outcome: Outcome) -> None:
        try:
            finished = self._asked(lambda: work.finish(outcome))
            if not finished:
                work.rollback()
                self._plan.happened(Name.FENCE_REFUSED, fence=self.fence)
                raise Fenced
            self._asked(work.commit)
            self._to_send = work.hand_over(self._plan.dispatch)
        except EffectOnceError as error:
            raise signal_of(error) from error

    def _release(self, *, retries: int, reset: bool) -> None:
        committed = self.committed
        if committed is None:
            return
        keep = self._plan.claim.keep
        held = self._asked(lambda: self._store.release(committed, retries=retries, reset=reset, keep=keep))
        if not held:
            raise Fenced
        self._plan.happened(Name.EFFECT_RELEASED, fence=committed.fence, retries=retries)

    @staticmethod
    def _asked(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except EffectOnceError as error:
            raise signal_of(error) from error
