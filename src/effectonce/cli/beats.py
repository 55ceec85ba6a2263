"""Terms and ticks as text for people, and as plain JSON values."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from effectonce.domain.series import SECOND, text_of
from effectonce.domain.terms import Seat
from effectonce.domain.ticks import Recorded, TickState

GONE: Final = 60.0
"""Seconds by which a tick may be late under a leader; what is later is of an entry that is gone."""


def facts(
    seats: Sequence[Seat], recent: Sequence[Recorded], coming: Sequence[Recorded], *, limit: int, now: float
) -> dict[str, Any]:
    """Who leads, and what comes next, came last, and was missed; *now* is epoch seconds."""
    led = {seat.name for seat in seats if seat.is_held}
    due = [row for row in coming if row.tick.group not in led or (row.following or 0) > (now - GONE) * SECOND]
    return {
        "terms": [_seat(seat) for seat in seats],
        "next": [_next(row) for row in due[:limit]],
        "last": [_tick(row) for row in recent if row.state is not TickState.SEEN][:limit],
        "missed": [_tick(row) for row in recent if row.missed][:limit],
    }


def page(told: dict[str, Any]) -> str:
    """The same, as lines."""
    lines = [_line(seat) for seat in told["terms"]] or ["no beat has led yet: celery -A proj beat -S once"]
    for title, of in (("next", "next"), ("last", "last"), ("missed", "missed")):
        rows = told[of]
        lines += ["", title if rows else f"{title}: none"]
        lines += [f"  {row['instant']}  {row['entry']}{_more(row)}" for row in rows]
    return "\n".join(lines)


def _seat(seat: Seat) -> dict[str, Any]:
    since = datetime.fromtimestamp(seat.since, UTC).isoformat(timespec="seconds")
    left = round(seat.left, 3) if seat.is_held else None
    return {
        "term": seat.name,
        "leader": seat.who if seat.is_held else None,
        "since": since,
        "left": left,
        "fence": seat.fence,
    }


def _line(seat: dict[str, Any]) -> str:
    if seat["leader"] is None:
        return f"{seat['term']}: nobody leads (the last one since {seat['since']})"
    return f"{seat['term']}: {seat['leader']} leads since {seat['since']}, for {seat['left']} s more unless it renews"


def _next(row: Recorded) -> dict[str, Any]:
    return {"entry": row.tick.name, "term": row.tick.group, "instant": text_of(row.following or 0)}


def _tick(row: Recorded) -> dict[str, Any]:
    return {
        "entry": row.tick.name,
        "term": row.tick.group,
        "instant": row.tick.text,
        "state": row.state.name.lower(),
        "task_id": row.tick.task_id,
        "missed_before": row.missed,
        "fence": row.fence,
    }


def _more(row: dict[str, Any]) -> str:
    state = f"  {row['state']}" if "state" in row else ""
    missed = f", {row['missed_before']} passed over before it" if row.get("missed_before") else ""
    return state + missed
