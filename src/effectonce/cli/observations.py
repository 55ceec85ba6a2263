"""What the mode ``observe`` has seen, for ``once status --observed``."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from effectonce.cli.tables import aligned, instant
from effectonce.domain.sightings import Sighting

MOST: Final = 10_000
"""Sightings that are looked at."""

SHOWN: Final = 20
"""The latest, one by one."""

_HEAD = ("task", "would have been", "calls", "of these redelivered", "keys")
_HEAD_OF_KEYS = ("last", "key", "would have been", "calls", "why")


def told(extension: Any, *, in_json: bool) -> str:
    """All of it as text or JSON: by task, and the latest keys."""
    found = [seen for store in extension.stores for seen in store.sightings(limit=MOST)]
    found.sort(key=lambda seen: -seen.last)
    if in_json:
        return json.dumps({"mode": extension.mode.value, "observed": [_facts(seen) for seen in found]}, indent=2)
    if not found:
        return (
            f"nothing was observed (the mode is {extension.mode.value!r}): since it was switched on, no call was seen "
            "that a policy would have kept from running"
        )
    parts = [_by_task(found), "the latest keys:", _latest(found[:SHOWN])]
    if len(found) > SHOWN:
        parts.append(f"... and {len(found) - SHOWN} more (--json)")
    return "\n\n".join(parts)


def _by_task(found: Sequence[Sighting]) -> str:
    kinds = {(seen.task, seen.would) for seen in found}
    calls, again, keys = Counter[Any](), Counter[Any](), Counter[Any]()
    for seen in found:
        kind = (seen.task, seen.would)
        calls[kind] += seen.times
        again[kind] += seen.times if seen.again else 0
        keys[kind] += 1
    rows = [
        (task, would.value, str(calls[task, would]), str(again[task, would]), str(keys[task, would]))
        for task, would in sorted(kinds, key=lambda kind: (kind[0], -calls[kind]))
    ]
    return aligned([_HEAD, *rows])


def _latest(found: Sequence[Sighting]) -> str:
    rows = [
        (instant(seen.last), seen.key, seen.would.value, str(seen.times), "redelivered" if seen.again else "sent again")
        for seen in found
    ]
    return aligned([_HEAD_OF_KEYS, *rows])


def _facts(seen: Sighting) -> dict[str, Any]:
    return {
        "key": seen.key,
        "digest": seen.digest.hex(),
        "task": seen.task,
        "would": seen.would.value,
        "redelivered": seen.again,
        "calls": seen.times,
        "first": instant(seen.first),
        "last": instant(seen.last),
        "last_task_id": seen.task_id,
    }
