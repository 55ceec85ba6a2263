"""One run of a task's body under watch: what it touches outside its process, and where it dies.

A *touch* is one thing that the body does outside its process: a statement, a commit, an HTTP request, a publish, a
command to Redis, a file that is written. An attempt is told to die before or after one of them, or to wait there for
another attempt. Death is `Crash`, which no body catches; from then on the attempt is dead, and whatever its ``finally``
and ``except`` clauses still try to touch fails the same way, as it would when the process was killed.

The attempt of a thread is found by a context variable, so two attempts can run side by side.
"""

import gc
import io
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from effectonce.testing.worlds import Files, Keys

T = TypeVar("T")

PATIENCE: Final = 10.0
"""Seconds that an attempt waits for the other one before it goes on by itself."""


class Crash(BaseException):
    """The process of this attempt died here."""


@dataclass(frozen=True, slots=True)
class Touch:
    """*what*: in a line. *changes*: whether the outside may be another one afterwards.

    *recorded*: the outside cannot be looked at, so how often this happened is what is compared. *once*: what makes a
    second one harmless. *end*: what the end of a process would end of it.
    """

    what: str
    changes: bool = True
    recorded: bool = False
    once: str | None = None
    end: Callable[[], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Point:
    """An instant of a body: before or after its touch number *at*, counted from 0."""

    side: Literal["before", "after"]
    at: int


class Meeting:
    """A place where an attempt waits until it is let go."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._go = threading.Event()

    def wait(self) -> None:
        """Say that the place is reached, and wait."""
        self.reached.set()
        self._go.wait(PATIENCE)

    def let_go(self) -> None:
        """Let the attempt go on."""
        self._go.set()


@dataclass(slots=True, kw_only=True, eq=False)
class Attempt:
    """One run under watch. *dies*: where; *meets*: the touch before which it waits, and the place.

    *touches*: what it set out to touch; *made*: what it did. *files* and *keys* are met before they are touched.
    *at_death* is called when it dies.
    """

    files: Files
    keys: Keys
    dies: Point | None = None
    meets: tuple[int, Meeting] | None = None
    touches: list[Touch] = field(default_factory=list)
    made: list[Touch] = field(default_factory=list)
    at_death: Callable[[], None] = lambda: None
    is_dead: bool = False
    outcome: Any = None
    _inside: bool = False

    def around(self, touch: Touch, call: Callable[[], T]) -> T:
        """Carry out one touch; what it touches in turn is part of it."""
        if self.is_dead:
            raise Crash
        if self._inside:
            return call()
        at = len(self.touches)
        self.touches.append(touch)
        self._maybe_die(Point("before", at))
        if self.meets is not None and self.meets[0] == at:
            self.meets[1].wait()
        self._inside = True
        try:
            result = call()
        finally:
            self._inside = False
        self.made.append(touch)
        if self.dies == Point("after", at):
            _ended(touch, result)
        self._maybe_die(Point("after", at))
        return result

    def _maybe_die(self, point: Point) -> None:
        if self.dies == point:
            token = _attempt.set(None)
            try:
                self.at_death()
            finally:
                _attempt.reset(token)
            self.is_dead = True
            raise Crash


_attempt: ContextVar[Attempt | None] = ContextVar("effectonce_testing_attempt", default=None)


def current_attempt() -> Attempt | None:
    """The attempt that this thread is part of."""
    return _attempt.get()


def touched(touch: Callable[["Attempt"], Touch], call: Callable[[], T]) -> T:
    """Carry out *call*; as a touch, described by *touch*, if an attempt is under watch."""
    attempt = _attempt.get()
    if attempt is None:
        return call()
    token = _attempt.set(None)  # whoever describes a touch may look at the outside, unwatched
    try:
        described = touch(attempt)
    finally:
        _attempt.reset(token)
    return attempt.around(described, call)


def run(attempt: Attempt, body: Callable[[], Any]) -> Attempt:
    """Run *body* as this attempt; its death and its errors end here."""
    token = _attempt.set(attempt)
    try:
        with _careless() if attempt.dies else nullcontext():
            attempt.outcome = _until_death(attempt, body)
    except Exception as error:  # noqa: BLE001 - any error of the user's body
        attempt.outcome = error
    finally:
        _attempt.reset(token)
    return attempt


def _ended(touch: Touch, result: Any) -> None:
    """What a process has open ends with it: its files, and the statements whose rows it has not read."""
    if isinstance(result, io.IOBase):
        result.close()
    if touch.end is not None:
        touch.end()


def _until_death(attempt: Attempt, body: Callable[[], Any]) -> Any:
    try:
        return body()
    except Crash:
        attempt.is_dead = True
        return None


@contextmanager
def _careless() -> Iterator[None]:
    """What a killed process had open is not closed by anybody; Python would warn of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield
        gc.collect()


@contextmanager
def only_new_rubbish() -> Iterator[None]:
    """Let collections pass over what was there before: a test process has a large heap, and a proof many deaths."""
    if gc.get_freeze_count():  # somebody else does that, and wants it to stay so
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
