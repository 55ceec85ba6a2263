"""Prometheus counters made of events; needs the extra ``[metrics]``.

The names are stable. Labels are few: a task's name, a cause, what was answered; never a key. In a worker with
processes of its own `prometheus_client` keeps them in files (``PROMETHEUS_MULTIPROC_DIR``), which
`effectonce.app.exporter` sees to.
"""

from typing import Final

from prometheus_client import Counter

from effectonce.events import Event, Name

EFFECTS: Final = Counter("effectonce_effects", "Bodies that ended, by outcome.", ["task", "outcome"])
DUPLICATES: Final = Counter(
    "effectonce_duplicates", "Deliveries that met an effect done or in hand, by cause.", ["task", "cause", "answer"]
)
TAKEOVERS: Final = Counter("effectonce_takeovers", "Claims whose holder was gone.", ["task"])
HELD: Final = Counter("effectonce_held", "Effects that were set aside for a person.", ["task", "state"])
FENCED: Final = Counter("effectonce_fenced", "Holders that had lost their claim.", ["task", "why"])
TICKS: Final = Counter("effectonce_ticks", "Ticks of beat.", ["what"])
OUTBOX: Final = Counter("effectonce_outbox_messages", "Messages of the outbox.", ["what"])
LEDGER: Final = Counter("effectonce_ledger_losses", "Times that a worker found its ledger away.", [])

_OUTCOMES: Final = {
    Name.EFFECT_COMPLETED: "completed",
    Name.EFFECT_FAILED: "failed",
    Name.EFFECT_RELEASED: "released",
}
_ANSWERS: Final = {
    Name.EFFECT_REPLAYED: "replayed",
    Name.EFFECT_DEFERRED: "deferred",
    Name.EFFECT_SKIPPED: "skipped",
    Name.EFFECT_SENT_BEFORE: "sent_before",
    Name.EFFECT_REUSED: "refused",
}


def count(event: Event) -> None:
    """Count one event."""
    name, task, cause = event.name, event.task, str(event.facts.get("cause", ""))
    if name in _OUTCOMES:
        EFFECTS.labels(task, _OUTCOMES[name]).inc()
    elif name in _ANSWERS:
        DUPLICATES.labels(task, cause or "none", _ANSWERS[name]).inc()
    elif name in {Name.CLAIM_TAKEN_OVER, Name.CLAIM_RESCUED}:
        TAKEOVERS.labels(task).inc()
    else:
        _count_rare(event)


def _count_rare(event: Event) -> None:
    match event.name:
        case Name.EFFECT_UNKNOWN:
            HELD.labels(event.task, "unknown").inc()
        case Name.EFFECT_POISONED:
            HELD.labels(event.task, "poisoned").inc()
        case Name.FENCE_REFUSED:
            FENCED.labels(event.task, "fence").inc()
        case Name.LEASE_LOST:
            FENCED.labels(event.task, "lease").inc()
        case Name.TICK_SENT:
            TICKS.labels("sent").inc()
        case Name.TICK_SKIPPED:
            TICKS.labels("skipped").inc(int(event.facts.get("missed", 1)))
        case Name.OUTBOX_SENT:
            OUTBOX.labels("sent").inc(int(event.facts.get("messages", 1)))
        case Name.OUTBOX_STUCK:
            OUTBOX.labels("stuck").inc()
        case Name.LEDGER_LOST:
            LEDGER.inc()
        case _:
            pass
