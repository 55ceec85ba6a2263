"""Entries as text for people. Results stay hidden: only their size is shown."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from effectonce.domain.claims import Entry, State

_HEAD = ("state", "key", "since", "fence", "attempts", "deaths", "task id")


def facts(entry: Entry) -> dict[str, Any]:
    """One entry as plain JSON values."""
    return {
        "key": entry.key,
        "digest": entry.digest.hex(),
        "state": entry.state.name.lower(),
        "since": _instant(entry.since),
        "fence": entry.fence,
        "attempt": entry.attempt.hex(),
        "attempts": entry.attempts,
        "deaths": entry.deaths,
        "retries": entry.retries,
        "task_id": entry.task_id,
        "lease_left": round(entry.lease_left, 3) if entry.state is State.CLAIMED else None,
        "continued": entry.continued,
        "result_bytes": len(entry.result) if entry.result is not None else None,
        "result_kept": entry.result_kept,
        "fingerprint": entry.fingerprint[:12].hex(),
    }


def table(entries: Sequence[Entry]) -> str:
    """Entries as aligned columns."""
    rows = [_HEAD, *[_row(entry) for entry in entries]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def card(entry: Entry, *, held: int) -> str:
    """One entry as lines of facts."""
    shown = facts(entry)
    lines = [f"effect {shown.pop('key')}"]
    lines += [f"  {name.replace('_', ' '):<12} {value}" for name, value in shown.items() if value is not None]
    if held:
        lines.append(f"  {held} message(s) wait with it")
    return "\n".join(lines)


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        entry.state.name.lower(),
        entry.key,
        _instant(entry.since),
        str(entry.fence),
        str(entry.attempts),
        str(entry.deaths),
        entry.task_id or "-",
    )


def _instant(since: float) -> str:
    return datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
