"""What happened to effects, as past facts with dotted names.

Loops and attempts emit events; observers make log lines (and later metrics and traces) of them. An event never
decides anything.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Name(StrEnum):
    """The events there are; their names are stable."""

    CLAIM_GRANTED = "claim.granted"
    CLAIM_REFUSED = "claim.refused"
    CLAIM_TAKEN_OVER = "claim.taken_over"
    CLAIM_RESCUED = "claim.rescued"
    EFFECT_COMPLETED = "effect.completed"
    EFFECT_FAILED = "effect.failed"
    EFFECT_RELEASED = "effect.released"
    EFFECT_REPLAYED = "effect.replayed"
    EFFECT_DEFERRED = "effect.deferred"
    EFFECT_SKIPPED = "effect.skipped"
    EFFECT_SENT_BEFORE = "effect.sent_before"
    EFFECT_REUSED = "effect.reused"
    EFFECT_UNKNOWN = "effect.unknown"
    EFFECT_POISONED = "effect.poisoned"
    EFFECT_OBSERVED = "effect.observed"
    EFFECT_SETTLED = "effect.settled"
    EFFECT_RERUN = "effect.rerun"
    EFFECT_REOPENED = "effect.reopened"
    EFFECT_REDACTED = "effect.redacted"
    FENCE_REFUSED = "fence.refused"
    LEASE_LOST = "lease.lost"
    DELIVERY_RENEWED = "delivery.renewed"
    DELIVERY_LOST = "delivery.lost"
    LEDGER_LOST = "ledger.lost"
    LEDGER_FOUND = "ledger.found"
    TERM_WON = "term.won"
    TERM_LOST = "term.lost"
    TICK_SENT = "tick.sent"
    TICK_SKIPPED = "tick.skipped"
    OUTBOX_SENT = "outbox.sent"
    OUTBOX_HELD_UP = "outbox.held_up"
    OUTBOX_STUCK = "outbox.stuck"
    ENTRIES_PRUNED = "entries.pruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One past fact about one effect; *facts* are plain values without secrets.

    *digest* is its key's, and *place* the name of the ledger that has its entry, where they are known.
    """

    name: Name
    key: str = ""
    task: str = ""
    task_id: str = ""
    attempt: str = ""
    fence: int = 0
    digest: bytes = b""
    scope: str = ""
    place: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


Emit = Callable[[Event], None]
