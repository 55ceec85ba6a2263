"""Deaths at a chosen instant, the same for every contender: seams of Celery and kombu, not of a contender.

A place's *fault* names where. The first process that gets there dies by SIGKILL; what marks it is a file.
"""

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from celery import Task
from celery.backends.base import Backend
from celery.backends.redis import RedisBackend
from kombu.messaging import Producer

from effectonce.lab.trials.place import Place

if TYPE_CHECKING:
    from collections.abc import Callable

FAULTS: Final = {
    "publish": "about to hand a message to the broker",
    "published": "a message handed to the broker, and nothing noted of it",
    "result": "the work done, its result not stored",
    "chord count": "the result stored, the chord not counted",
    "retry": "a retry asked for, its message not sent",
}
HEADERS: Final = 4
"""Where ``Producer._publish`` has them (kombu 5.3 to 5.7); batches and single messages all go through it."""


def arm(place: Place) -> None:
    """Make this process die where *place* says, unless another one was first."""
    fault, _, task = place.fault.partition(":")
    match fault:
        case "publish" | "published":
            _patch(Producer, "_publish", place, after=fault == "published", of=task)
        case "result":
            _patch(Backend, "mark_as_done", place)
        case "chord count":
            _patch(RedisBackend, "on_chord_part_return", place)
        case "retry":
            _patch(Task, "signature_from_request", place, after=True)
        case _:
            return


def mark_of(place: Place) -> Path:
    """The file that is there when somebody has died."""
    return Path(place.diary).with_name("died")


def _patch(owner: Any, name: str, place: Place, *, after: bool = False, of: str = "") -> None:
    original: Callable[..., Any] = getattr(owner, name)

    def fatal(self: Any, *args: Any, **kwargs: Any) -> Any:
        strikes = not of or (args[HEADERS] or {}).get("task") == of
        if strikes and not after:
            _die_once(place)
        result = original(self, *args, **kwargs)
        if strikes and after:
            _die_once(place)
        return result

    setattr(owner, name, fatal)


def _die_once(place: Place) -> None:
    mark = mark_of(place)
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    from effectonce.lab.trials.diary import Diary  # noqa: PLC0415 - only who dies writes

    Diary(Path(place.diary)).note("killed", text=f"dies: {FAULTS[place.fault.partition(':')[0]]}")
    os.kill(os.getpid(), signal.SIGKILL)
