"""Log lines made from events.

The ordinary path says nothing above DEBUG. What a person may want to know at night has its own level below; facts
go into ``extra`` too, so that a log store can search for a key.
"""

import logging
from typing import Final

from effectonce.events import Event, Name

logger = logging.getLogger("effectonce")

_LEVELS: Final = {
    Name.CLAIM_GRANTED: logging.DEBUG,
    Name.EFFECT_COMPLETED: logging.DEBUG,
    Name.CLAIM_REFUSED: logging.DEBUG,
    Name.EFFECT_RELEASED: logging.DEBUG,
    Name.DELIVERY_RENEWED: logging.DEBUG,
    Name.OUTBOX_SENT: logging.DEBUG,
    Name.EFFECT_FAILED: logging.INFO,
    Name.EFFECT_REPLAYED: logging.INFO,
    Name.EFFECT_DEFERRED: logging.INFO,
    Name.EFFECT_SKIPPED: logging.INFO,
    Name.EFFECT_SENT_BEFORE: logging.INFO,
    Name.EFFECT_OBSERVED: logging.INFO,
    Name.LEDGER_FOUND: logging.INFO,
    Name.TERM_WON: logging.INFO,
    Name.TICK_SENT: logging.INFO,
    Name.ENTRIES_PRUNED: logging.INFO,
    Name.EFFECT_SETTLED: logging.INFO,
    Name.EFFECT_RERUN: logging.INFO,
    Name.EFFECT_REOPENED: logging.INFO,
    Name.EFFECT_REDACTED: logging.INFO,
    Name.EFFECT_POISONED: logging.ERROR,
    Name.EFFECT_UNKNOWN: logging.ERROR,
    Name.OUTBOX_STUCK: logging.ERROR,
    Name.LEDGER_LOST: logging.ERROR,
}


def log(event: Event) -> None:
    """Write one line about *event*; names without a level of their own are warnings."""
    _write(event, _LEVELS.get(event.name, logging.WARNING))


def log_ordinary_too(event: Event) -> None:
    """The same, and what is ordinary at INFO."""
    _write(event, max(_LEVELS.get(event.name, logging.WARNING), logging.INFO))


def _write(event: Event, level: int) -> None:
    if not logger.isEnabledFor(level):
        return
    scope = event.scope if event.scope != event.task else ""
    named = {"key": event.key, "scope": scope, "task": event.task, "task_id": event.task_id, "attempt": event.attempt}
    shown = {name: value for name, value in {**named, "fence": event.fence, **event.facts}.items() if value}
    line = " ".join(f"{name}={value}" for name, value in shown.items())
    logger.log(level, "%s %s", event.name.value, line, extra={"effectonce": {"event": event.name.value, **shown}})
