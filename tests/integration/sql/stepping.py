"""Two attempts, stepped statement by statement through every order that a database can see them in.

An actor is a thread with an engine of its own. It stops before each statement and commit until it is given
its turn, and one of them moves at a time. All orders are walked depth first: a game is played again from its start for
each, with the same choices up to the point where it turns off.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

SLOW = 1.0
"""Seconds after which a step counts as waiting, where the other one may let it go on."""

STUCK = 30.0


class WaitedForABody(AssertionError):
    """A statement waited for a transaction that has a body in it."""


class Actor(threading.Thread):
    """Does *act*, one step a turn."""

    def __init__(self, name: str, engine: sa.Engine, act: Callable[["Actor"], Any]) -> None:
        super().__init__(name=name, daemon=True)
        self.engine = engine
        self.trace: list[str] = []
        self.in_body = False
        self.answer: Any = None
        self.error: BaseException | None = None
        self._act = act
        self._turn = threading.Semaphore(0)
        self._at_rest = threading.Event()
        for name_of_event in ("before_cursor_execute", "commit"):
            sa.event.listen(engine, name_of_event, self._stopping(name_of_event))

    def run(self) -> None:
        """Act to the end."""
        try:
            self.answer = self._act(self)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            self.error = error
        self._at_rest.set()

    def move(self, *, seconds: float) -> bool:
        """Let it do one step; False when it does not come to rest in time."""
        self._at_rest.clear()
        self._turn.release()
        return self.is_at_rest(seconds=seconds)

    def is_at_rest(self, *, seconds: float) -> bool:
        """Whether it stands before its next step, or has ended."""
        return self._at_rest.wait(seconds)

    @property
    def has_ended(self) -> bool:
        """Whether nothing is left to do."""
        return self._at_rest.is_set() and not self.is_alive()

    def _stopping(self, name: str) -> Callable[..., None]:
        def stop(*arguments: Any) -> None:
            if threading.current_thread() is self:
                self._rest(arguments[2] if name == "before_cursor_execute" else name)

        return stop

    def _rest(self, what: str) -> None:
        self.trace.append(" ".join(what.split())[:60])
        self._at_rest.set()
        self._turn.acquire()


@dataclass
class Game:
    """One order: *choices* up to where it turns off, and what could be chosen at each point."""

    choices: list[int] = field(default_factory=list)
    widths: list[int] = field(default_factory=list)
    order: list[str] = field(default_factory=list)

    def play(self, actors: Sequence[Actor]) -> None:
        """Step the actors to their ends."""
        for actor in actors:
            actor.start()
            assert actor.is_at_rest(seconds=STUCK)
        waiting: list[Actor] = []
        while True:
            waiting = [actor for actor in waiting if not actor.is_at_rest(seconds=0)]
            ready = [actor for actor in actors if actor not in waiting and not self._ends(actor)]
            if not ready:
                for actor in waiting:
                    assert actor.is_at_rest(seconds=STUCK), f"{actor.name} waits for nobody: {self.order}"
                if not waiting:
                    return
                continue
            actor = ready[self._choose(len(ready))]
            self.order.append(f"{actor.name}: {actor.trace[-1]}")
            if not actor.move(seconds=SLOW):
                self._wait_for_no_body(actor, actors)
                waiting.append(actor)

    @staticmethod
    def _ends(actor: Actor) -> bool:
        """Whether it has done its last step; the thread itself ends right after it."""
        if actor.answer is not None or actor.error is not None:
            actor.join(STUCK)
        return actor.has_ended

    def _wait_for_no_body(self, actor: Actor, actors: Sequence[Actor]) -> None:
        holders = [other for other in actors if other is not actor and other.in_body and not other.has_ended]
        if holders and not actor.is_at_rest(seconds=3):
            raise WaitedForABody(self.order)

    def _choose(self, width: int) -> int:
        """The next choice; a machine that was slow the last time may have left fewer of them."""
        at = len(self.widths)
        self.widths.append(width)
        if at == len(self.choices):
            self.choices.append(0)
        self.choices[at] = min(self.choices[at], width - 1)
        return self.choices[at]

    def following(self) -> "Game | None":
        """The next order, depth first."""
        choices, widths = list(self.choices), list(self.widths)
        while choices and choices[-1] + 1 >= widths[len(choices) - 1]:
            choices.pop()
        if not choices:
            return None
        choices[-1] += 1
        return Game(choices)


def every_order() -> Iterator[Game]:
    """All games; each must be played before the next one is asked for."""
    game: Game | None = Game()
    while game is not None:
        yield game
        game = game.following()
