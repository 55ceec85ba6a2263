"""A second send of the same key sends nothing, and gives the first one's result.

Before a message goes out, its name is reserved for its id: by a unique constraint, so of many that send at one instant
one sends. The others learn the first one's id. A reservation is a lease: the message may be lost, revoked or expire
without a word, so it always ends after its time, and before that when the message has started or is done.

Where the message goes with a body's transaction, so does its reservation: both commit or neither does. With a
transaction that cannot take it along (the leases live elsewhere, or it is a session of one's own) the message goes out
in any case: a reservation that outlives its message would suppress a send for nothing.

What belongs to a canvas always goes out: whoever waits for it waits under its own id. So do retries and copies.

What a crash leaves: after reserving and before sending, a reservation without a message, until its end; after the body,
one that ends by itself or with the message's next delivery.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from celery.exceptions import Reject, Retry
from celery.utils.time import maybe_iso8601

from effectonce.app import requests
from effectonce.app.frames import Frame, current_frame
from effectonce.domain.causes import Cause
from effectonce.domain.keys import Key
from effectonce.domain.modes import Mode
from effectonce.domain.sightings import Sighting, Would
from effectonce.errors import EffectOnceError, LedgerUnavailable
from effectonce.events import Event, Name

if TYPE_CHECKING:
    from collections.abc import Callable

    from effectonce.app.extension import EffectOnce
    from effectonce.app.guard import Guard

logger = logging.getLogger("effectonce")

_PERSON: Final = b"effectonce-send1"


class AlreadySent(BaseException):
    """Carries the first message's id from the seam to `send_task`, past everything that catches errors."""

    def __init__(self, *, first: str, task_id: str) -> None:
        super().__init__(first, task_id)
        self.first, self.task_id = first, task_id


class Described:
    """As much of a request as a key needs, for a message that is only being sent."""

    def __init__(self, *, id: str, headers: dict[str, Any]) -> None:  # noqa: A002 - the request's own name
        self.id = id
        self.headers = headers


@dataclass(frozen=True, slots=True)
class Reservation:
    """A name that is ours; *store* has it."""

    store: Any
    name: bytes
    holder: str

    def give_back(self) -> None:
        """End it; one that cannot be ended now ends after its time."""
        with suppress(LedgerUnavailable):
            self.store.give_back(self.name, self.holder)


def tell_of_first_sends(once: "EffectOnce", app: Any) -> None:
    """Let ``send_task`` answer a second send by the first one's result, with ``duplicate`` saying which it is."""
    plain: Callable[..., Any] = app.send_task

    @wraps(plain)
    def send_task(name: str, *args: Any, **options: Any) -> Any:
        try:
            result = plain(name, *args, **options)
        except AlreadySent as already:
            _forget_result(app, already.task_id)
            result = (options.get("result_cls") or app.AsyncResult)(already.first)
            result.duplicate = True
            return result
        task = app._tasks.get(name)  # noqa: SLF001 - `tasks` would finalize the app; listed in test_celery_names
        guard = once.guard_of(task) if task is not None else None
        if guard is not None and guard.unique is not None:
            result.duplicate = False
        return result

    app.send_task = send_task


def reserve(
    guard: "Guard", task: Any, message: Any, options: dict[str, Any], *, transaction: Any
) -> Reservation | None:
    """See `_reserve`; where sends are only observed, nothing that keeps us from looking keeps them from going out."""
    if guard.mode is not Mode.OBSERVE:
        return _reserve(guard, task, message, options, transaction=transaction)
    try:
        return _reserve(guard, task, message, options, transaction=None)
    except EffectOnceError as error:
        logger.warning("a send of %s was not observed: %s", guard.task_name, error)
        return None


def _reserve(
    guard: "Guard", task: Any, message: Any, options: dict[str, Any], *, transaction: Any
) -> Reservation | None:
    """Reserve the name of a message that is about to go out; raises AlreadySent when another one has it.

    *transaction*: what it is stored with, if it is. None where it goes out in any case. Raises LedgerUnavailable when
    the leases cannot be asked: then nothing is sent.
    """
    unique, headers = guard.unique, {**message.headers, **(options.get("headers") or {})}
    if unique is None or headers.get("retries") or requests.DEFERRALS in headers:
        return None
    args, kwargs, embedded = message.body
    task_id = str(headers["id"])
    key = guard.key_of(task, Described(id=task_id, headers=headers), args, kwargs)
    store = guard.once.leases_of(key)
    if transaction is not None:
        store = _going_along(store, transaction)
        if store is None:
            return None
    seconds = unique.seconds + _due_in(guard.once.app, headers.get("eta"))
    mine = Reservation(store, _name_of(key), task_id)
    first = store.reserve(mine.name, task_id, seconds)
    if first == task_id:
        return mine if transaction is None else None
    if headers.get("group") or any(embedded.get(part) for part in ("callbacks", "errbacks", "chain", "chord")):
        return None
    if guard.mode is Mode.OBSERVE:
        _observed(store, guard, key, task_id)
        return None
    facts = {"cause": Cause.CALLER.value}
    guard.once.emit(
        Event(
            name=Name.EFFECT_SENT_BEFORE,
            key=str(key),
            task=guard.task_name,
            task_id=first,
            digest=key.digest,
            scope=key.scope,
            facts=facts,
        )
    )
    raise AlreadySent(first=first, task_id=task_id)


def _observed(store: Any, guard: "Guard", key: Key, task_id: str) -> None:
    """A second send goes out, and is counted as one that would not have."""
    facts = {"would": Would.NOT_SEND.value}
    guard.once.emit(
        Event(name=Name.EFFECT_OBSERVED, key=str(key), task=guard.task_name, digest=key.digest, facts=facts)
    )
    store.see(
        Sighting(
            digest=key.digest,
            key=str(key),
            task=guard.task_name,
            task_id=task_id,
            would=Would.NOT_SEND,
            again=False,
        )
    )


def _going_along(leases: Any, transaction: Any) -> Any:
    """What reserves in that transaction: a body's work, when the leases live in its database."""
    frame = current_frame()
    with_it = hasattr(transaction, "reserve") and frame is not None and frame.ledger is leases
    return transaction if with_it else None


def started(frame: Frame) -> None:
    """The body begins: what was reserved until then is free."""
    unique = frame.guard.unique
    if unique is not None and unique.until == "started" and frame.guard.mode is not Mode.OFF:
        _give_back(frame)


def ended(frame: Frame, error: BaseException | None) -> None:
    """The call has ended; where its message will not come again, what was reserved until it is done is free."""
    unique = frame.guard.unique
    again = frame.comes_again or isinstance(error, Retry) or (isinstance(error, Reject) and error.requeue)
    if unique is not None and isinstance(unique.until, str) and not again:
        _give_back(frame)


def _give_back(frame: Frame) -> None:
    if frame.delivery.deferrable:
        Reservation(frame.guard.once.leases_of(frame.key), _name_of(frame.key), frame.delivery.task_id).give_back()


def _name_of(key: Key) -> bytes:
    return blake2b(key.digest, digest_size=16, person=_PERSON).digest()


def _due_in(app: Any, eta: Any) -> float:
    """Seconds until a message is due: its reservation lasts from then on."""
    due: datetime | None = maybe_iso8601(eta)
    if due is None:
        return 0.0
    aware = due if due.tzinfo else due.replace(tzinfo=app.timezone)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def _forget_result(app: Any, task_id: str) -> None:
    """Celery listens for a result from before it sends; nobody will write this one."""
    consumer = getattr(app.backend, "result_consumer", None)
    if consumer is not None:
        consumer.cancel_for(task_id)
