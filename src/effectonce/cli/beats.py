"""Terms and ticks as text for people, and as plain JSON values."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from effectonce.domain.series import text_of
from effectonce.domain.terms import Seat
from effectonce.domain.ticks import Recorded, TickState


def facts(seats: Sequence[Seat], recent: Sequence[Recorded], *, limit: int) -> dict[str, Any]:
    """Who leads, and what comes next, came last, and was missed."""
    return {
        "terms": [_seat(seat) for seat in seats],
        "next": [_next(row) for row in _coming(recent)[:limit]],
        "last": [_tick(row) for row in recent if row.state is not TickState.SEEN][:limit],
        "missed": [_tick(row) for row in recent if row.missed][:limit],
    }


def page(seats: Sequence[Seat], recent: Sequence[Recorded], *, limit: int) -> str:
    """The same, as lines."""
    told = facts(seats, recent, limit=limit)
    lines = [_line(seat) for seat in told["terms"]] or ["no beat has led yet: celery -A proj beat -S once"]
    for title, of in (("next", "next"), ("last", "last"), ("missed", "missed")):
        rows = told[of]
        lines += ["", title if rows else f"{title}: none"]
        lines += [f"  {row['instant']}  {row['entry']}{_more(row)}" for row in rows]
    return "\n".join(lines)


def _coming(recent: Sequence[Recorded]) -> list[Recorded]:
    """The last tick of each entry, by the instant that follows it."""
    last: dict[tuple[str, str], Recorded] = {}
    for row in recent:
        key = (row.tick.group, row.tick.name)
        if key not in last or row.tick.instant > last[key].tick.instant:
            last[key] = row
    return sorted((row for row in last.values() if row.following is not None), key=lambda row: row.following or 0)


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
