"""Markers: rows and keys that say that work was done."""

import re
from typing import Final

from effectonce.checker.effects import INSERTING, is_insert
from effectonce.checker.keyuses import is_store
from effectonce.checker.lookups import inserted_model
from effectonce.checker.module import Function
from effectonce.checker.names import last, words
from effectonce.checker.walk import Step

_MARKERS: Final = {"done", "seen", "processed", "handled", "marker", "dedup", "idempotency", "idempotent", "completed"}
_CLAIMS: Final = frozenset({"get_or_create", "update_or_create"})
MARKING: Final = INSERTING | _CLAIMS
"""The last words of calls that may insert a marker."""

_NAMES: Final = re.compile(r"done|seen|processed|handled|sent|dedup|idempot|once", re.IGNORECASE)


def marks_row(step: Step, function: Function) -> bool:
    """Tell whether a call inserts a row into a table of what is done."""
    if step.word not in _CLAIMS and (step.word not in INSERTING or not is_insert(step)):
        return False
    model = inserted_model(step, function)
    return model is not None and bool(words(last(model)) & _MARKERS)


def marks_key(step: Step, text: str) -> bool:
    """Tell whether a call claims a key of a store that is named for what is done; *text* is the key's source."""
    return claims_key(step) and _NAMES.search(text) is not None


def claims_key(step: Step) -> bool:
    """Tell whether a call claims a key of a store."""
    claims = step.word in {"setnx", "add"} or any(each.arg == "nx" for each in step.call.keywords)
    return claims and is_store(step.receiver)
