"""Markers: rows and keys that say that work was done."""

import re
from typing import Final

from effectonce.checker.effects import is_insert
from effectonce.checker.keyuses import is_store
from effectonce.checker.lookups import inserted_model
from effectonce.checker.module import Function
from effectonce.checker.names import before, last, words
from effectonce.checker.walk import Step

_MARKERS: Final = {"done", "seen", "processed", "handled", "marker", "dedup", "idempotency", "idempotent", "completed"}
_NAMES: Final = re.compile(r"done|seen|processed|handled|sent|dedup|idempot|once", re.IGNORECASE)


def marks_row(step: Step, function: Function) -> bool:
    """Tell whether a call inserts a row into a table of what is done."""
    word = last(step.name)
    if not is_insert(step) and word not in {"get_or_create", "update_or_create"}:
        return False
    model = inserted_model(step, function)
    return model is not None and bool(words(last(model)) & _MARKERS)


def marks_key(step: Step, text: str) -> bool:
    """Tell whether a call claims a key of a store that is named for what is done; *text* is the key's source."""
    if not is_store(before(step.name)) or not _NAMES.search(text):
        return False
    return last(step.name) in {"setnx", "add"} or any(each.arg == "nx" for each in step.call.keywords)
