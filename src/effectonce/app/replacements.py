"""A body that hands its work over by ``replace()``: whether its own key comes again in what it sends (rule 5).

Its entry is then let go, not completed: the replacement takes the key. A later step of a chain, group or chord counts
as well. It would meet a finished entry whose result is that of the whole, and wait for itself.
"""

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

from effectonce.app.frames import Frame
from effectonce.app.unique import Described
from effectonce.errors import EffectOnceError
from effectonce.runtime.unguarded import UnguardedAttempt


def note_replacement(frame: Frame, guard: Any, task: Any, message: Any, options: dict[str, Any]) -> None:
    """Look at one message that a body sends; *guard* and *task* are of its receiver, None where it has none."""
    headers = message.headers
    nesting = headers.get("replaced_task_nesting") or 0
    in_my_name = headers.get("id") == frame.delivery.task_id and nesting > frame.delivery.nesting
    if not (frame.replaced or in_my_name):
        return
    frame.replaced = True
    if guard is not None:
        request = Described(id=headers["id"], headers={**headers, **(options.get("headers") or {})})
        with suppress(EffectOnceError) if isinstance(frame.attempt, UnguardedAttempt) else nullcontext():
            key = guard.key_of(task, request, message.body[0], message.body[1])
            frame.handed_on = frame.handed_on or key.digest == frame.claim.digest
    frame.handed_on = frame.handed_on or any(_has_key_of(frame, step) for step in _later_steps(message.body))


def _later_steps(body: Any) -> Iterator[Any]:
    """The signatures that a message carries along: the rest of its chain, its chord's body, its links."""
    embedded = body[2] if isinstance(body, (tuple, list)) and isinstance(body[2], dict) else {}
    waiting = [embedded.get(part) for part in ("chain", "chord", "callbacks", "errbacks")]
    while waiting:
        each = waiting.pop()
        if isinstance(each, (list, tuple)):
            waiting.extend(each)
        elif isinstance(each, dict) and "task" in each:
            yield each
            waiting.extend(each.get("kwargs", {}).get(part) for part in ("tasks", "header", "body"))
            waiting.extend(each.get("options", {}).get(part) for part in ("link", "link_error", "chain", "chord"))


def _has_key_of(frame: Frame, step: Any) -> bool:
    """Whether a step takes the key of this body, as far as its arguments say so."""
    app = frame.task.app
    task = app.tasks.get(step["task"])
    guard = app.effectonce.guard_of(task) if task is not None else None
    if guard is None:
        return False
    request = Described(id=step["options"].get("task_id") or "", headers=step["options"].get("headers") or {})
    try:
        key = guard.key_of(task, request, step["args"], step["kwargs"])
    except (EffectOnceError, TypeError):  # its first argument is the result of the step before it
        return False
    return bool(key.digest == frame.claim.digest)
