"""Spans of time as deployment files write them."""

import re
from typing import Final

_PART: Final = re.compile(
    r"(\d+(?:\.\d+)?)\s*(us|ms|seconds?|sec|s|minutes?|min|m|hours?|hr|h|days?|d)?", re.IGNORECASE
)
_UNITS: Final = {"u": 0.000001, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str) -> float | None:
    """`90`, `1m30s`, `2min`, `5 minutes`, `infinity` in seconds; None where it is no span of time."""
    text = text.strip()
    if text.lower() == "infinity":
        return float("inf")
    total = 0.0
    end = 0
    for match in _PART.finditer(text):
        if text[end : match.start()].strip():
            return None
        unit = (match[2] or "s").lower()
        total += float(match[1]) * (_UNITS["ms"] if unit == "ms" else _UNITS[unit[0]])
        end = match.end()
    return total if end and not text[end:].strip() else None
