"""What is true of a canvas as a whole: it has no key, and one that replaces a tick's task is of that tick.

Celery would copy a key to every member of a group or chord, and to the first step of a chain alone. So it is refused
where that happens: the three ``apply_async`` of Celery's canvas are wrapped once a process, by a check that looks at
the one option and passes everything on.
"""

from collections.abc import Mapping
from functools import wraps
from typing import Any

from celery import canvas

from effectonce.app import requests
from effectonce.errors import KeyInvalid

_MARK = "_effectonce_checks_keys"


def refuse_keys_on_wholes() -> None:
    """Wrap the canvas; a second call does nothing."""
    for kind in (canvas.group, canvas._chain, canvas._chord):  # noqa: SLF001 - listed in test_celery_names
        plain = kind.apply_async
        if not hasattr(plain, _MARK):
            kind.apply_async = _checking(plain, kind.__name__.strip("_"))


def _checking(plain: Any, kind: str) -> Any:
    @wraps(plain)
    def apply_async(self: Any, *args: Any, **options: Any) -> Any:
        if "effect_key" in options:
            reason = f"a {kind} as a whole has no key; give it to a member with .set(effect_key=...)"
            raise KeyInvalid(task=kind, part="effect_key", reason=reason)
        return plain(self, *args, **options)

    setattr(apply_async, _MARK, True)
    return apply_async


def keep_tick(sig: Any, headers: Mapping[str, Any]) -> None:
    """Let each message of a replacement say of which tick it is, as the message says that is replaced.

    Celery drops its headers. Without them a template's key would be the same at each tick, and only the first
    replacement of all would take effect.
    """
    tick = {name: headers[name] for name in (requests.TICK, requests.ENTRY) if name in headers}
    pending = [sig] if tick else []
    while pending:
        each = pending.pop()
        parts = _parts(each)
        pending.extend(parts)
        if not parts:
            options = each["options"]
            each["options"] = {**options, "headers": {**(options.get("headers") or {}), **tick}}


def _parts(sig: Any) -> list[Any]:
    """The signatures that a canvas is made of; none for one task."""
    said = sig["kwargs"]
    match sig.get("subtask_type"):
        case "chain" | "group":
            return list(said["tasks"])
        case "chord":
            header = said["header"]
            return [*([header] if isinstance(header, dict) else header), said["body"]]
        case _:
            return []
