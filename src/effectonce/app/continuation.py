"""From the settled effect to everything that goes on from it.

After the body Celery sends links and the next step of a chain, stores the result and counts a chord's part, in this
order (`celery.app.trace`, 5.7.0). A worker may die in between, the broker or the result backend may be away. The work
is done all the same, so none of it may end as FAILURE. The request carries a *duty*; while it stands,

* an error of a publish or of the backend requeues the message (`Reject`), whose next delivery finds the effect done
  and goes on from its stored result;
* when the backend has taken the result and counted the chord's part, the duty is done: the entry is marked as
  continued, at the price of one statement, and only if the message has a continuation at all.
"""

from dataclasses import dataclass
from typing import Any, Final

from celery.exceptions import Reject

from effectonce import crashpoints
from effectonce.errors import LedgerUnavailable
from effectonce.ports import LedgerStore

_DUTY: Final = "effectonce_duty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """What is owed after an effect: the mark on the entry of this *attempt*, if *marked* says it is worth one."""

    ledger: LedgerStore
    digest: bytes
    attempt: bytes
    marked: bool
    eager: bool

    def done(self) -> None:
        """Mark the entry as continued. A mark that is lost costs a second dispatch with the same ids, no more."""
        if self.marked:
            try:
                self.ledger.mark_continued(self.digest, self.attempt)
            except LedgerUnavailable:
                return


def owe(task: Any, request: Any, duty: Duty) -> None:
    """Put *duty* on a request whose effect is settled; its backend will end it."""
    setattr(request, _DUTY, duty)
    _shield(task.backend)
    crashpoints.crash_point("continuation.before")


def duty_of(request: Any) -> Duty | None:
    """The duty that stands on a request, None where nothing is owed or the call is eager."""
    duty: Duty | None = getattr(request, _DUTY, None)
    return None if duty is None or duty.eager else duty


def _shield(backend: Any) -> None:
    """Let this backend end duties; once for each backend object."""
    for method in ("mark_as_done", "mark_as_failure"):
        if method not in backend.__dict__:
            setattr(backend, method, _ending_duties(getattr(backend, method)))


def _ending_duties(plain: Any) -> Any:
    def mark(task_id: str, outcome: Any, *args: Any, **kwargs: Any) -> Any:
        request = kwargs.get("request") or next((each for each in args if hasattr(each, _DUTY)), None)
        duty: Duty | None = getattr(request, _DUTY, None)
        if duty is None:
            return plain(task_id, outcome, *args, **kwargs)
        try:
            answer = plain(task_id, outcome, *args, **kwargs)
        except Exception as error:
            if duty.eager:
                raise
            raise Reject(error, requeue=True) from error
        crashpoints.crash_point("continuation.after")
        duty.done()
        return answer

    return mark
