"""Entries as text for people. Results stay hidden: only their size is shown."""

import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

from effectonce.domain.claims import Entry, State
from effectonce.domain.outbox import Depth, Stored

_STYLES: Final = {"completed": "green", "poisoned": "bold red", "unknown": "bold red", "stuck": "red", "failed": "red"}

_HEAD = ("state", "key", "since", "fence", "attempts", "deaths", "task id")

_MESSAGE_FACTS = ("id", "stage", "since", "due", "tries", "task", "task_id", "error")
_MESSAGE_HEAD = ("id", "stage", "since", "due", "tries", "task", "task id", "error")


def facts(entry: Entry) -> dict[str, Any]:
    """One entry as plain JSON values."""
    return {
        "key": entry.key,
        "digest": entry.digest.hex(),
        "state": entry.state.name.lower(),
        "since": instant(entry.since),
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


def depth(found: Depth) -> dict[str, Any]:
    """How much waits in the outbox, as plain JSON values; the age in whole seconds."""
    return {"ready": found.ready, "parked": found.parked, "stuck": found.stuck, "oldest": round(found.oldest)}


def message_facts(stored: Stored) -> dict[str, Any]:
    """One message of the outbox as plain JSON values."""
    message = stored.message
    return {
        "id": stored.id,
        "stage": stored.stage.name.lower(),
        "task": message.task,
        "task_id": message.task_id,
        "since": instant(stored.since),
        "due": None if message.due is None else instant(message.due),
        "tries": stored.tries,
        "error": stored.error or None,
        "order": message.order,
        "bytes": len(message.body),
    }


def messages(stored: Sequence[Stored]) -> str:
    """Messages of the outbox as aligned columns."""
    facts_of = [message_facts(each) for each in stored]
    rows = [_MESSAGE_HEAD, *[tuple(str(each[name] or "-") for name in _MESSAGE_FACTS) for each in facts_of]]
    return aligned(rows)


def table(entries: Sequence[Entry]) -> str:
    """Entries as aligned columns."""
    return aligned([_HEAD, *[_row(entry) for entry in entries]])


def aligned(rows: Sequence[tuple[str, ...]]) -> str:
    """A table in a terminal that has `rich`, plain columns elsewhere; the first row is the head."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            return _drawn(rows)
    return _plain(rows)


def _drawn(rows: Sequence[tuple[str, ...]]) -> str:
    from rich import box  # noqa: PLC0415 - an extra
    from rich.console import Console  # noqa: PLC0415 - an extra
    from rich.table import Table  # noqa: PLC0415 - an extra
    from rich.text import Text  # noqa: PLC0415 - an extra

    table, console = Table(box=box.SIMPLE_HEAD), Console()
    for title in rows[0]:
        table.add_column(title, overflow="fold")
    for row in rows[1:]:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    with console.capture() as shown:
        console.print(table)
    return shown.get().strip("\n")


def _plain(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        entry.state.name.lower(),
        entry.key,
        instant(entry.since),
        str(entry.fence),
        str(entry.attempts),
        str(entry.deaths),
        entry.task_id or "-",
    )


def instant(since: float) -> str:
    """Epoch seconds as people write them, in UTC."""
    return datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
