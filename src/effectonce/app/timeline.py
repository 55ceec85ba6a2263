"""The timeline of a key: what its ledger knows of it in the order in which it happened, and what can be done now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from effectonce.app.entries import Seen
from effectonce.domain.claims import State
from effectonce.ports.history import Happened

_KINDS: Final = {
    "effect.replayed": "duplicate",
    "effect.deferred": "duplicate",
    "effect.skipped": "duplicate",
    "effect.sent_before": "duplicate",
    "effect.reused": "bad",
    "claim.taken_over": "takeover",
    "claim.rescued": "takeover",
    "fence.refused": "bad",
    "lease.lost": "bad",
    "effect.unknown": "bad",
    "effect.poisoned": "bad",
    "effect.failed": "bad",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One point of the line; *kind* chooses its colour, *title* is said in the reader's language."""

    at: float
    kind: str
    title: str
    cause: str = ""
    times: int = 1
    facts: Mapping[str, Any] = field(default_factory=dict)


def timeline(seen: Seen, history: Sequence[Happened]) -> list[Moment]:
    """All moments, oldest first."""
    return sorted(_moments(seen, history), key=lambda moment: moment.at)


def _moments(seen: Seen, history: Sequence[Happened]) -> Iterator[Moment]:
    for step in seen.steps:
        facts = {"step": step.name}
        yield Moment(at=step.began, kind="step", title="step began", facts=facts)
        if step.ended is not None:
            yield Moment(
                at=step.ended, kind="step", title="step skipped" if step.skipped else "step ended", facts=facts
            )
    for each in history:
        named = {"task_id": each.task_id, "attempt": each.attempt, "fence": each.fence or "", **each.facts}
        facts = {
            name: value
            for name, value in named.items()
            if value not in ("", None, []) and name not in {"cause", "differ"}
        }
        kind = _KINDS.get(each.name, "person")
        yield Moment(at=each.at, kind=kind, title=each.name, cause=each.cause, times=each.times, facts=facts)
    entry = seen.entry
    kind = "good" if entry.state is State.COMPLETED else "now"
    yield Moment(at=entry.since, kind=kind, title=f"now {entry.state.name.lower()}", facts={"fence": entry.fence})


def actions_for(state: State) -> tuple[str, ...]:
    """What a person can do with an effect in this state."""
    if state in {State.UNKNOWN, State.POISONED}:
        return ("settle", "rerun")
    return ("reopen", "redact") if state in {State.COMPLETED, State.FAILED} else ()
