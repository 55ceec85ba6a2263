"""From the settled effect to everything that goes on from it.

After the body Celery sends links and the next step of a chain, stores the result and counts a chord's part, in this
order (`celery.app.trace`, 5.7.0). A worker may die in between, the broker or the result backend may be away, a soft
time limit may strike. The work is done all the same, so none of it may end as FAILURE. The request carries a *duty*;
while it stands,

* what cannot be sent or stored is put off: a copy of the delivery is published and confirmed, the rest of the
  continuation is left to it, and this delivery ends. The copy finds the effect done, and goes on from the stored
  result;
* if the broker does not take the copy either, the message itself comes back (`Reject`);
* what can never be encoded ends as Celery ends it: as a failure that says so;
* when the backend has taken the result and counted the chord's part, the duty is done: the entry is marked as
  continued, at the price of one statement, and only if the message has a continuation at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from celery.exceptions import Reject
from kombu.exceptions import EncodeError

from effectonce import crashpoints
from effectonce.errors import LedgerUnavailable
from effectonce.ports import LedgerStore

_DUTY: Final = "effectonce_duty"
_REPLAYED: Final = "effectonce_replayed"


@dataclass(slots=True, kw_only=True)
class Duty:
    """What is owed after an effect: the mark on the entry of this *attempt*, if *marked* says it is worth one.

    *succeeded*: the effect took place, so no FAILURE may be stored. *copy* publishes a copy of the delivery and returns
    when the broker has it. *is_put_off*: a copy is on its way, and all that is left is left to it.
    """

    ledger: LedgerStore
    digest: bytes
    attempt: bytes
    marked: bool
    eager: bool
    succeeded: bool
    copy: Callable[[], None]
    is_put_off: bool = False

    def done(self) -> None:
        """Mark the entry as continued. A mark that is lost costs a second dispatch with the same ids, no more."""
        if self.marked:
            try:
                self.ledger.mark_continued(self.digest, self.attempt)
            except LedgerUnavailable:
                return

    def put_off(self, error: BaseException) -> None:
        """Leave what is owed to a copy; raises `Reject` when there can be none."""
        try:
            self.copy()
        except Exception:  # noqa: BLE001 - each broker has its own
            raise Reject(error, requeue=True) from error
        self.is_put_off = True


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
    if "mark_as_done" not in backend.__dict__:
        backend.mark_as_done = _ending_duties(backend.mark_as_done)
        backend.mark_as_failure = _ending_duties(backend.mark_as_failure, failure=True)
        backend._get_result_meta = _telling_replays(backend._get_result_meta)  # noqa: SLF001 - in test_celery_names


def _telling_replays(plain: Any) -> Any:
    """Let the meta of a result say that it was given back; a backend with columns of its own has no place for that."""

    def result_meta(result: Any, state: str, traceback: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        meta = plain(result, state, traceback, request, *args, **kwargs)
        if getattr(request, _REPLAYED, False):
            meta["replayed"] = True
        return meta

    return result_meta


def note_replay(request: Any) -> None:
    """Note that the result of this request is that of an earlier one."""
    setattr(request, _REPLAYED, True)


def _ending_duties(plain: Any, *, failure: bool = False) -> Any:
    def mark(task_id: str, outcome: Any, *args: Any, **kwargs: Any) -> Any:
        request = kwargs.get("request") or next((each for each in args if hasattr(each, _DUTY)), None)
        duty: Duty | None = getattr(request, _DUTY, None)
        if duty is None or duty.eager:
            answer = plain(task_id, outcome, *args, **kwargs)
            if duty is not None:
                duty.done()
            return answer
        if duty.is_put_off:
            return None
        if failure and duty.succeeded and not isinstance(outcome, EncodeError):
            return duty.put_off(outcome)
        try:
            answer = plain(task_id, outcome, *args, **kwargs)
        except EncodeError:
            raise
        except Exception as error:  # noqa: BLE001 - each backend has its own
            return duty.put_off(error)
        crashpoints.crash_point("continuation.after")
        duty.done()
        return answer

    return mark
