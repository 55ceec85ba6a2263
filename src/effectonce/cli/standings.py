"""How a ledger stands, for ``once status``."""

import json
from typing import Any

import click

from effectonce.cli.tables import depth
from effectonce.domain.claims import State
from effectonce.errors import LedgerUnavailable
from effectonce.ports import LedgerStore, is_transactional


def of(store: LedgerStore, *, ready: bool, as_json: bool) -> dict[str, Any]:
    """What is known of one ledger as plain JSON values; only whether it answers, if *ready*.

    Raises LedgerUnavailable when it does not; *as_json* prints that first.
    """
    told: dict[str, Any] = {"ledger": store.name, "ready": True}
    try:
        store.ping()
    except LedgerUnavailable as error:
        if as_json:
            click.echo(json.dumps({**told, "ready": False, "why": error.code}))
        raise
    if ready:
        return told
    told["entries"] = {state.name.lower(): number for state, number in store.counts().items()}
    told["outbox"] = depth(store.outbox.depth()) if is_transactional(store) else {}
    return told


def page(told: dict[str, Any]) -> str:
    """The same as text."""
    counts, waiting = told["entries"], told["outbox"]
    lines = [f"ledger  {told['ledger']} answers"]
    lines += [f"{name:<10}{counts.get(name, 0):>12}" for name in (state.name.lower() for state in State)]
    if waiting:
        lines.append("outbox    " + ", ".join(f"{number} {name}" for name, number in waiting.items()))
    if counts.get("unknown") or counts.get("poisoned"):
        lines.append("some effects wait for a person: celery -A proj once list --state poisoned")
    return "\n".join(lines)
