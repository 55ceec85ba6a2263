"""Named instants at which a test may kill the process.

A crash point stands at each boundary that touches the outside, before it and after it. Nothing is armed in a
normal process, and then a point costs one look at a module attribute. A test arms one with the environment variable
``EFFECTONCE_CRASH``: ``name`` kills at its first passing, ``name:3`` at the third. With ``EFFECTONCE_CRASH_ONCE``
naming a file, only the first process that gets there dies: it creates the file and is gone. The kill is SIGKILL,
the one a process cannot answer.

The names are listed here, and the crash matrix must have a case for each of them
(``tests/crash/test_matrix.py``).
"""

import os
import signal
from collections.abc import Callable
from typing import Final

POINTS: Final = frozenset(
    {
        "claim.before",
        "claim.after",
        "body.before",
        "body.after",
        "settle.before",
        "settle.after",
        "commit.before",
        "commit.after",
        "release.before",
        "release.after",
        "reserve.before",
        "reserve.after",
        "give_back.before",
        "give_back.after",
        "follow.before",
        "follow.after",
        "defer.before",
        "defer.after",
        "retry.before_publish",
        "retry.after_publish",
        "continuation.before",
        "continuation.after",
        "mark.before",
        "mark.after",
        "renew.before",
        "renew.after",
        "takeover.after",
        "visibility.before",
        "visibility.after",
        "sweep.before",
        "sweep.after",
        "rescue.before",
        "rescue.after",
        "tick.claim.before",
        "tick.claim.after",
        "tick.send.before",
        "tick.send.after",
        "tick.mark.after",
        "ack.before",
        "step.begin.before",
        "step.begin.after",
        "step.end.before",
        "step.end.after",
        "outbox.before",
        "outbox.after",
        "dispatch.before",
        "dispatch.after",
        "relay.before",
        "relay.after",
    }
)


def _pass(_name: str) -> None:
    """Do nothing: no point is armed."""


def _armed(setting: str, once: str | None) -> Callable[[str], None]:
    wanted, _, nth = setting.partition(":")
    if wanted not in POINTS:
        message = f"EFFECTONCE_CRASH names no crash point: {wanted!r}"
        raise ValueError(message)
    passed = 0

    def point(name: str) -> None:
        nonlocal passed
        if name != wanted:
            return
        passed += 1
        if passed == int(nth or 1) and _first(once):
            os.kill(os.getpid(), signal.SIGKILL)

    return point


def _first(once: str | None) -> bool:
    """Tell whether this process is the first to get here; exclusive creation decides."""
    if once is None:
        return True
    try:
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


crash_point: Callable[[str], None] = (
    _armed(os.environ["EFFECTONCE_CRASH"], os.environ.get("EFFECTONCE_CRASH_ONCE"))
    if os.environ.get("EFFECTONCE_CRASH")
    else _pass
)
