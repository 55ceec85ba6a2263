"""When a message is due, as its headers say (or, in protocol 1, its body)."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def eta_of(facts: Mapping[str, Any]) -> float | None:
    """Seconds since the epoch; None without an eta, or with one that Celery could not read either.

    Celery writes ISO 8601; one without a zone is UTC.
    """
    told = facts.get("eta")
    if not told:
        return None
    try:
        instant = datetime.fromisoformat(told)
        return (instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError):
        return None
