"""A delivery, read off Celery's request.

The flag of the broker is trusted only where it stands in ``delivery_info``: the headers ``redelivered`` and
``x-delivery-count`` leak into the messages of later retries (celery 5.7.0). SQS and PGMQ count instead of flagging.
Transports that do neither make every delivery a possible repeat.
"""

from typing import Any, Final

from effectonce.domain.causes import Cause
from effectonce.domain.deliveries import Delivery
from effectonce.domain.outbox import RELAYED

KEY: Final = "effectonce_key"
AGAIN: Final = "effectonce_again"
FENCE: Final = "effectonce_fence"
DEFERRALS: Final = "effectonce_deferrals"
HTTP: Final = "effectonce_http"
PARENT: Final = "effectonce_parent"
TICK: Final = "effectonce_tick"
ENTRY: Final = "effectonce_entry"
SENT: Final = "effectonce_sent"
CAUSE: Final = "effectonce_cause"
_BEAT: Final = "celery_beat_task"

_FLAGGING: Final = frozenset({"redis", "amqp"})
_TIMED: Final = frozenset({"redis", "sqs", "pgmq"})


def set_header(options: dict[str, Any], message: Any, name: str, value: Any) -> None:
    """Give a message that is being sent one more header; *options* are those of the send."""
    message.headers[name] = value
    if options.get("headers"):
        options["headers"] = {**options["headers"], name: value}


def read_delivery(task: Any, request: Any) -> Delivery:
    """Say what this call is: a message at a worker, an eager call, or a direct one."""
    if request.called_directly or request.id is None:
        return Delivery(task=task.name)
    headers = request.headers or {}
    eager = bool(request.is_eager)
    flagged, counts = (False, True) if eager else _flag(task.app, request)
    continuation = bool(request.callbacks or request.chain or request.chord)
    return Delivery(
        task=task.name,
        task_id=request.id,
        nesting=request.replaced_task_nesting or 0,
        retries=request.retries or 0,
        flagged=flagged,
        counts=counts,
        deferrals=int(headers.get(DEFERRALS) or 0),
        reenter=headers.get(FENCE),
        continues=continuation,
        fails_on=bool(request.errbacks or request.chain or request.chord),
        deferrable=not eager,
        cause=_cause(headers),
        relayed=RELAYED in headers,
        by_beat=TICK in headers or bool(headers.get(_BEAT)),
        is_timed=not eager and transport_of(task.app) in _TIMED,
    )


def _cause(headers: Any) -> str:
    """What an earlier delivery of this message found out; a word that we do not know is none."""
    said = headers.get(CAUSE)
    if said is None:
        return ""
    return str(said) if said in list(Cause) else ""


def _flag(app: Any, request: Any) -> tuple[bool, bool]:
    """Whether the broker says that it delivered this before, and whether it would say so."""
    info = request.delivery_info or {}
    if info.get("redelivered"):
        return True, True
    received = (request.properties or {}).get("delivery_info") or {}
    for message, attribute in (("sqs_message", "ApproximateReceiveCount"), ("pgmq_message", "read_ct")):
        if message in received:
            facts = received[message]
            count = (facts.get("Attributes") or facts).get(attribute)
            return int(count or 1) > 1, count is not None
    return False, transport_of(app) in _FLAGGING


def transport_of(app: Any) -> str:
    """The driver of the broker that this app reads from, such as ``redis`` or ``amqp``; found once, unconnected."""
    found = app.__dict__.get("_effectonce_transport")
    if found is None:
        found = app.connection_for_read().transport.driver_type
        app.__dict__["_effectonce_transport"] = found
    return str(found)
