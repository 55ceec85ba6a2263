"""A message that is sent while a transaction of the caller's own is open (``effectonce_send_in_transaction``).

Sent at once, its worker may come before the commit and find no row, or the transaction is rolled back and the task runs
all the same. So a guarded task's message goes with the transaction: into the outbox where that is the ledger's, else it
leaves after the commit. What else is sent is left as it was, unless the setting says otherwise.

Seen are Django's ``atomic`` blocks, but for those that wrap a test case, and sessions that are bound (`BoundSessions`).
What is sent in a task's own name (a retry, a replacement) is never held back: Celery says by an exception that it was
sent, and that exception would roll it back.
"""

import logging
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from celery._state import get_current_task

from effectonce.domain.modes import Mode
from effectonce.domain.outbox import Message
from effectonce.errors import OutboxUnsuitable, SentInTransaction, SettingsInvalid
from effectonce.ports import TransactionalStore, is_transactional
from effectonce.ports.outbox import BrokerAway

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce
    from effectonce.app.guard import Guard

T = TypeVar("T")

logger = logging.getLogger("effectonce")

_DJANGO: Final = "effectonce.contrib.django.hooks"
"""A plug-in above this layer, loaded by name where Django is in use."""


def transaction_around(once: "EffectOnce", name: str, guard: "Guard | None", headers: dict[str, Any]) -> Any:
    """What a message goes with, something that has ``send(message)``; None: it is sent now.

    Raises SentInTransaction where that is what the setting says.
    """
    said = _said(once, guard)
    if said == "now" or _is_in_own_name(headers):
        return None
    if said == "raise":
        if _with_ledger(once) is not None or _after_commit(once) is not None:
            raise SentInTransaction(task=name)
        return None
    stored = _with_ledger(once) if said == "outbox" else None
    return stored if stored is not None else _after_commit(once)


def goes_into_outbox(once: "EffectOnce", guard: "Guard | None") -> bool:
    """Whether a message that is sent here is stored with the transaction that is open."""
    return _said(once, guard) == "outbox" and _with_ledger(once) is not None


def _said(once: "EffectOnce", guard: "Guard | None") -> str:
    """What is to become of it; settings that cannot be used are reported by whoever needs them."""
    try:
        said = once.settings.send_in_transaction
    except SettingsInvalid:
        return "now"
    if once.mode is not Mode.ENFORCE:
        return "now"
    if said is not None:
        return said
    return "outbox" if guard is not None and guard.mode is Mode.ENFORCE else "now"


def _is_in_own_name(headers: dict[str, Any]) -> bool:
    task = get_current_task()
    if task is None or task.request.id is None:
        return False
    nesting = (headers.get("replaced_task_nesting") or 0) > (task.request.replaced_task_nesting or 0)
    return nesting or headers.get("id") == task.request.id


def _with_ledger(once: "EffectOnce") -> Any:
    """What stores with the transaction that is open, if it is the ledger's; a sender need not have the ledger's driver.

    Nothing is opened where nothing can be open.
    """
    session = once.bound_session()
    if session is None and "django.db" not in sys.modules:
        return None
    try:
        ledgers = once.ledgers
    except SettingsInvalid:
        return None
    found = (_joined(once, ledger, session) for ledger in ledgers if is_transactional(ledger))
    return next((each for each in found if each is not None), None)


def _joined(once: "EffectOnce", ledger: TransactionalStore, session: Any) -> Any:
    dispatch = once.dispatcher_of(ledger).dispatch
    if session is None:
        return ledger.outbox.around(dispatch=dispatch)
    try:
        return ledger.outbox.join(session, dispatch=in_thread(dispatch) if _is_async(session) else dispatch)
    except OutboxUnsuitable:
        return None


def in_thread(dispatch: Callable[[Sequence[T]], None]) -> Callable[[Sequence[T]], None]:
    """An event loop does not wait for the broker."""

    def start(stored: Sequence[T]) -> None:
        threading.Thread(target=dispatch, args=(stored,), name="effectonce-dispatch", daemon=True).start()

    return start


def _is_async(session: Any) -> bool:
    return bool(getattr(getattr(session.bind, "dialect", None), "is_async", False))


def _after_commit(once: "EffectOnce") -> Any:
    """What sends after the commit of a transaction that is not the ledger's; None without one."""
    session = once.bound_session()
    if session is not None:
        from effectonce.stores.sql.sessions import AfterCommit  # noqa: PLC0415 - there is a session: it is loaded

        send = partial(send_now, once)
        return AfterCommit.of(session, send=in_thread(send) if _is_async(session) else send)
    hook = _django_hook()
    return None if hook is None else _Hooked(once, hook)


def _django_hook() -> Callable[[Callable[[], None]], None] | None:
    if "django.db" not in sys.modules or not sys.modules["django.conf"].settings.configured:
        return None
    found: Callable[[Callable[[], None]], None] | None = import_module(_DJANGO).hook_of_open_block()
    return found


class _Hooked:
    """Messages that leave in a framework's hook after its commit."""

    def __init__(self, once: "EffectOnce", hook: Callable[[Callable[[], None]], None]) -> None:
        self._once = once
        self._hook = hook

    def send(self, message: Message) -> None:
        self._hook(lambda: send_now(self._once, [message]))


def send_now(once: "EffectOnce", messages: Sequence[Message]) -> None:
    """Send messages whose transaction is committed; one that cannot be sent is told, since nothing has stored it.

    What is due later is parked.
    """
    parked = [message for message in messages if message.due is not None]
    if parked:
        once.outbox_store().store(parked)
    ready = [message for message in messages if message.due is None]
    try:
        answers = once.broker.send(ready) if ready else []
    except BrokerAway as away:
        answers = [None] * away.sent + [away] * (len(ready) - away.sent)
    for message, refusal in zip(ready, answers, strict=True):
        if refusal is not None:
            logger.error("after a commit, task %s (%s) could not be sent: %s", message.task, message.task_id, refusal)
