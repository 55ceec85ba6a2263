"""A remote-control command by which a worker says how it is set up; the doctor compares what they say.

It tells no secrets: addresses stand without passwords.
"""

import time
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

import celery
from celery.utils.time import maybe_iso8601
from celery.worker.control import inspect_command

from effectonce.app.brokers import visibility_timeout

COMMAND: Final = "effectonce"
_MOST: Final = 100


@inspect_command(name=COMMAND)
def facts(state: Any) -> dict[str, Any]:
    """How this worker is set up, and what it holds until its eta."""
    app = state.app
    once = getattr(app, "effectonce", None)
    if once is None:
        return {"guarded": False}
    settings = once.settings
    namespace = settings.namespace
    return {
        "guarded": True,
        "now": time.time(),
        "waiting": _waiting(state),
        "setup": {
            "effectonce": version("effectonce"),
            "celery": celery.__version__,
            "ledger": once.ledger.name if settings.ledger is not None else "none",
            "leases": once.leases.name,
            "namespace": namespace if isinstance(namespace, str) else "a callable",
            "keep_seconds": settings.keep_seconds,
            "lease_seconds": settings.lease_seconds,
            "max_takeovers": settings.max_takeovers,
            "renew_visibility": settings.renew_visibility,
            "visibility_timeout": visibility_timeout(app),
            "result_serializer": app.conf.result_serializer,
        },
    }


def _waiting(state: Any) -> list[dict[str, Any]]:
    """Messages that this worker holds until their eta."""
    now, found = datetime.now(UTC), []
    for waiting in list(state.consumer.timer.schedule.queue)[:_MOST]:
        request = next(iter(waiting.entry.args), None)
        eta = maybe_iso8601(getattr(request, "eta", None))
        if request is not None and eta is not None:
            aware = eta if eta.tzinfo else eta.replace(tzinfo=UTC)
            found.append({"task": request.name, "id": request.id, "in": (aware - now).total_seconds()})
    return found
