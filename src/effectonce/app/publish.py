"""The seam that every message of the app passes.

It is an instance attribute over ``app.amqp.send_task_message``, the one point that ``delay``, ``send_task``, every
canvas, ``retry`` and ``replace`` cross (celery 5.4 to 5.7); Celery's own sender is resolved at the first send, so
that installing reads no configuration. Here

* an eta beyond the visibility timeout is warned of, refused, or parked (`far_etas`);
* a guarded task's message is told when it was sent (rule 16);
* ``effect_key=`` and ``effect_again=`` become headers (left alone, they would be message properties);
* links of guarded tasks get ids that a second dispatch repeats (rule 6);
* a retry of the body in this frame is kept back until the body is unwound, and gets its fence (rule 5);
* a replacement with the same key is noticed (rule 5);
* what is sent inside a transaction of the ledger is stored with it (`effectonce.app.sending`);
* a child without a key of its own gets its parent's key and its ordinal, or the HTTP request's key;
* a continuation that cannot be sent is left to a copy, and is no failure of work that is done (rule 6).
"""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from celery import signature
from celery._state import get_current_task
from kombu.exceptions import EncodeError

from effectonce.app import requests
from effectonce.app.continuation import duty_of
from effectonce.app.copies import kept_back
from effectonce.app.frames import Frame, current_frame
from effectonce.app.http import current_conversation
from effectonce.app.overdue import stamp
from effectonce.app.replacements import note_replacement
from effectonce.app.sending import Collecting, collecting_around, collecting_for, park
from effectonce.app.unique import reserve
from effectonce.domain.modes import Mode
from effectonce.domain.outbox import RELAYED
from effectonce.errors import KeyInvalid
from effectonce.runtime.unguarded import UnguardedAttempt

if TYPE_CHECKING:
    from effectonce.app.extension import EffectOnce

Send = Callable[..., Any]


def install_seam(once: "EffectOnce", app: Any) -> None:
    """Put the seam over this app's sender; a seam that is there already is wrapped, not lost."""
    amqp = app.amqp
    earlier = amqp.__dict__.get("send_task_message")
    cell: list[Send] = [earlier] if earlier is not None else []

    def send_task_message(producer: Any, name: str, message: Any, **options: Any) -> Any:
        if not cell:
            cell.append(amqp._create_task_sender())  # noqa: SLF001 - listed in test_celery_names
        return _divert(once, cell[0], producer, name, message, options)

    amqp.send_task_message = send_task_message


def _divert(  # noqa: PLR0917 - the arguments of the seam itself
    once: "EffectOnce", send: Send, producer: Any, name: str, message: Any, options: dict[str, Any]
) -> Any:
    due = once.far_etas.look(name, message)
    frame = current_frame()
    task = once.app._tasks.get(name)  # noqa: SLF001 - `tasks` would finalize the app; listed in test_celery_names
    guard = once.guard_of(task) if task is not None else None
    mode = None if guard is None else guard.mode
    _keys_to_headers(name, message, options, guarded=guard)
    if mode is Mode.ENFORCE:
        stamp(message, options)
        _freeze_links(once.app, message)
    if frame is not None and _is_retry(frame, message.headers):
        _fenced(frame, options)
        if isinstance(frame.attempt, UnguardedAttempt):
            frame.attempt.retried()
            return _send(once, send, producer, name, message, options, due, collecting_for(once, producer))
        if due is not None:
            frame.retry = lambda: park(
                once, producer, name, lambda recorder: send(recorder, name, message, **options), due
            )
        else:
            frame.retry = kept_back(once.confirmed, send, name, message, options)
        return None
    if frame is not None and frame.entered:
        note_replacement(frame, guard, task, message, options)
    if guard is not None and guard.takes_parent_key and mode is not Mode.OFF:
        _name_by_sender(once, frame, message, options)
    collecting = collecting_around(once, producer, name, guard, message.headers)
    if guard is None or guard.unique is None or mode is Mode.OFF:
        return _send(once, send, producer, name, message, options, due, collecting)
    transaction = None if collecting is None else collecting.transaction
    reservation = reserve(guard, task, message, options, transaction=transaction)
    try:
        return _send(once, send, producer, name, message, options, due, collecting)
    except BaseException:
        if reservation is not None:
            reservation.give_back()
        raise


def _keys_to_headers(name: str, message: Any, options: dict[str, Any], *, guarded: Any) -> None:
    for option, header in (("effect_key", requests.KEY), ("effect_again", requests.AGAIN)):
        value = options.pop(option, None)
        if value is None:
            continue
        if not isinstance(value, str) or not value:
            raise KeyInvalid(task=name, part=option, reason=f"it must be text, not {type(value).__name__}")
        if option == "effect_key" and guarded is not None and guarded.mode is Mode.ENFORCE:
            guarded.check_key_at_call()
        if option == "effect_again" and guarded is not None and guarded.mode is Mode.ENFORCE:
            guarded.check_generation()
        requests.set_header(options, message, header, value)


def _name_by_sender(once: "EffectOnce", frame: Frame | None, message: Any, options: dict[str, Any]) -> None:
    """A task that names no key is named by the body that sends it, or by the HTTP request."""
    if frame is not None and frame.entered:
        requests.set_header(options, message, requests.PARENT, frame.name_next())
    else:
        _name_by_request(once, message, options)


def _name_by_request(once: "EffectOnce", message: Any, options: dict[str, Any]) -> None:
    """A task that names no key is named by the HTTP request that sends it; one that comes again keeps its name."""
    conversation = current_conversation()
    if conversation is None or conversation.once is not once or conversation.header is None:
        return
    if requests.HTTP not in {**message.headers, **(options.get("headers") or {})}:
        requests.set_header(options, message, requests.HTTP, conversation.header)


def _freeze_links(app: Any, message: Any) -> None:
    """Give each link an id made from its parent's, so that a continuation sent twice carries the same ids.

    A link that is shared by several messages is copied first: freezing changes it.
    """
    body = message.body
    if not isinstance(body, (tuple, list)) or not isinstance(body[2], dict):
        return
    parent = str(message.headers["id"])
    for kind in ("callbacks", "errbacks"):
        links = body[2].get(kind)
        if links:
            body[2][kind] = [_frozen(app, link, f"{parent}:{kind}:{at}") for at, link in enumerate(links)]


def _frozen(app: Any, link: Any, name: str) -> Any:
    copy = signature(_deep(link), app=app)
    if not copy.options.get("task_id"):
        copy.freeze(str(uuid.uuid5(uuid.NAMESPACE_OID, f"effectonce:{name}")))
    return copy


def _deep(value: Any) -> Any:
    """A copy that shares no container; Celery's own `deepcopy` of a signature is shallow."""
    if isinstance(value, dict):
        return {key: _deep(each) for key, each in value.items()}
    return [_deep(each) for each in value] if isinstance(value, (list, tuple)) else value


def _is_retry(frame: Frame, headers: dict[str, Any]) -> bool:
    delivery = frame.delivery
    return (
        bool(delivery.task_id)
        and headers.get("id") == delivery.task_id
        and headers.get("task") == delivery.task
        and (headers.get("replaced_task_nesting") or 0) == delivery.nesting
        and headers.get("retries") == delivery.retries + 1
    )


def _fenced(frame: Frame, options: dict[str, Any]) -> None:
    """Let the retry carry the fence of its attempt, where that is committed, and no count of an earlier deferral."""
    headers = {**(options.get("headers") or {})}
    for word in (requests.DEFERRALS, requests.CAUSE, RELAYED):
        headers.pop(word, None)
    headers.pop(requests.FENCE, None)
    committed = frame.attempt.committed
    if committed is not None:
        headers[requests.FENCE] = committed.fence
    options["headers"] = headers


def _send(  # noqa: PLR0917 - the arguments of the seam itself
    once: "EffectOnce",
    send: Send,
    producer: Any,
    name: str,
    message: Any,
    options: dict[str, Any],
    due: float | None,
    collecting: Collecting | None,
) -> Any:
    """Store it with the open transaction, or send it; a continuation with confirmation: it must go on."""
    if collecting is not None:
        return send(collecting.recorder(producer, name, due=due), name, message, **options)
    if due is not None and once.is_own_broker(producer.connection):
        return park(once, producer, name, lambda recorder: send(recorder, name, message, **options), due)
    task = get_current_task()
    duty = duty_of(task.request) if task is not None else None
    if duty is None:
        return send(producer, name, message, **options)
    if duty.is_put_off:
        return None
    try:
        with once.confirmed.acquire() as confirming:
            return send(confirming, name, message, **{**options, **once.confirmed.options})
    except EncodeError:
        raise
    except Exception as error:  # noqa: BLE001 - each broker has its own
        return duty.put_off(error)
