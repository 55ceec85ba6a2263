"""When a message was due: when it was sent, as its header says, or its eta (rule 16)."""

import time
from typing import TYPE_CHECKING, Any, Final

from effectonce.app import requests
from effectonce.app.etas import eta_of
from effectonce.domain.overdue import due_at, is_overdue

if TYPE_CHECKING:
    from effectonce.app.frames import Frame

LONGEST: Final = 4e9
"""Epoch seconds beyond which a header is nobody's clock."""


def stamp(message: Any, options: dict[str, Any]) -> None:
    """Write into a message when it is sent; a copy and a retry are sent anew."""
    requests.set_header(options, message, requests.SENT, round(time.time(), 3))


def due_of(request: Any) -> float | None:
    """When the message of *request* was due, epoch seconds; None when it does not say."""
    return due_at(_sent((request.headers or {}).get(requests.SENT)), eta_of({"eta": request.eta}))


def _sent(told: object) -> float | None:
    """The header's instant; None for what a foreign sender may have put there."""
    return float(told) if isinstance(told, (int, float)) and 1 < told < LONGEST else None


def is_late(frame: "Frame") -> bool:
    """Whether this delivery comes so late that an empty ledger proves nothing."""
    if not frame.delivery.deferrable or frame.claim.recurs or frame.guard.may_run_twice:
        return False
    return is_overdue(due=due_of(frame.request), now=time.time(), keep=frame.claim.keep)
