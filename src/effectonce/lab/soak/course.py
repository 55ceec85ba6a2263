"""One round: send and strike as planned, let it come to rest, count, ask for everything once more, count again."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from effectonce.lab.narrator import Narrator
from effectonce.lab.soak.blows import Blows
from effectonce.lab.soak.caller import Caller
from effectonce.lab.soak.judge import Count, count, effects_of, excused
from effectonce.lab.soak.plan import Blow, Round
from effectonce.lab.soak.system import Ground

LOOK_EVERY: Final = 0.1
STILL: Final = 75.0
"""Seconds without any new answer after which a round is at rest; a copy that waits for its key comes back sooner."""
QUIET: Final = 16.0
"""The same, where the broker is known to be empty: a relay looks into the outbox at least that often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one round came to; lists are in words."""

    number: int
    system: str
    renews: bool
    effects: int
    messages: int
    bodies: int
    struck: Counter[Blow]
    doubled: list[str]
    lost: list[str]
    stuck: list[str]
    skipped: int
    vanished: int
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Tell whether every effect took place once and nothing is stuck."""
        return not (self.doubled or self.lost or self.stuck)


class Course:
    """A round on its ground."""

    def __init__(self, plan: Round, ground: Ground, narrator: Narrator) -> None:
        self._plan = plan
        self._ground = ground
        self._narrator = narrator
        self._blows = Blows(ground)
        self._caller = Caller(tasks=ground.app.tasks, backend=ground.app.backend)
        self._began = time.monotonic()

    def take(self) -> Outcome:
        """Let it take place."""
        self._storm()
        self._rest()
        first = count(self._ground, self._plan.orders)
        vanished = len(self._caller.unanswered)
        before = len(self._caller.messages)
        self._caller.ask_again([(task, order) for order in self._plan.orders for task in effects_of(order)])
        self._rest(since=before)
        stuck = [f"{each.task} {each.order.number}: {each.state}" for each in self._caller.unanswered_since(before)]
        return self._outcome(first, count(self._ground, self._plan.orders), stuck, vanished)

    def _storm(self) -> None:
        self._caller.plan(self._plan.orders, start=self._began)
        strikes = list(self._plan.strikes)

        def passed() -> bool:
            while strikes and time.monotonic() - self._began >= strikes[0].at:
                self._blows.strike(strikes.pop(0))
            return not strikes and not self._caller.waits

        self._until(passed)
        self._blows.end()

    def _rest(self, since: int = 0) -> None:
        """Wait until everything is answered and has taken effect, or nothing has for long."""
        left, moved = -1, time.monotonic()

        def rests() -> bool:
            nonlocal left, moved
            now = self._open(since)
            if now != left:
                left, moved = now, time.monotonic()
            still = time.monotonic() - moved
            return not self._caller.waits and (not left or still > STILL or (still > QUIET and self._ground.is_quiet()))

        self._until(rests)

    def _open(self, since: int) -> int:
        """How many messages have no answer; then how many effects are not there, for a note answers nobody."""
        self._caller.look()
        return len(self._caller.unanswered_since(since)) or len(count(self._ground, self._plan.orders).lost)

    def _until(self, condition: Callable[[], bool]) -> None:
        while True:
            self._caller.step()
            self._blows.step()
            answered = len(self._caller.messages) - len(self._caller.unanswered)
            self._narrator.progress(answered, len(self._caller.messages))
            if condition():
                return
            time.sleep(LOOK_EVERY)

    def _outcome(self, first: Count, last: Count, stuck: list[str], vanished: int) -> Outcome:
        self._ground.journal.read()
        may_vanish = excused(self._plan.system.broker, self._blows.struck)
        failed = [f"{number} messages ended {state}" for state, number in self._caller.failed.items()]
        lost = first.lost if len(first.lost) > may_vanish or vanished > may_vanish else []
        return Outcome(
            number=self._plan.number,
            system=self._plan.system.name,
            renews=self._plan.renews,
            effects=last.effects,
            messages=len(self._caller.messages),
            bodies=len(self._ground.journal.runs),
            struck=self._blows.struck,
            doubled=last.doubled,
            lost=lost or last.lost,
            stuck=[*stuck, *failed],
            skipped=len(last.skipped),
            vanished=vanished,
            seconds=time.monotonic() - self._began,
        )
