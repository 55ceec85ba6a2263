"""All trials of one task: what is done to it, and what is left afterwards.

1. It runs twice from the same beginning, cleanly. What differs between the two runs (instants, random ids) is left out
   of every comparison. The second run tells what the body touches.
2. It is delivered twice, and sent twice by its caller.
3. It dies before and after each touch that may change the outside, and is delivered again.
4. It waits before each touch while a second delivery comes and goes.

Each trial begins with the same database, keys and files, and its end is compared with that of the clean run.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass
from typing import Final

from effectonce.testing.attempts import PATIENCE, Attempt, Meeting, Point, Touch, only_new_rubbish
from effectonce.testing.databases import Database
from effectonce.testing.delivery import Call, is_busy, new_message, short_leases
from effectonce.testing.differences import State, differences, volatile
from effectonce.testing.faults import watched
from effectonce.testing.leftovers import Leftovers
from effectonce.testing.verdict import Finding, NotOnce, Proof
from effectonce.testing.worlds import Files, Keys, Ledgers

_OVERLAP: Final = 0.2
"""Seconds that a second delivery may take while the first one waits; it may be waiting for the first one."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault: *words* for the report, and what is done, which answers all attempts that were made."""

    words: str
    carry_out: Callable[[], list[Attempt]]


class Sweep:
    """The proof of one call; used once. *progress* is told before each trial which one it is, and of how many."""

    def __init__(
        self,
        call: Call,
        database: Database | None,
        ignore: Sequence[str],
        *,
        progress: Callable[[int, int], None] = lambda _number, _all: None,
    ) -> None:
        self._progress = progress
        self._call = call
        self._database = database
        self._ignore = frozenset(ignore)
        self._files, self._keys, self._ledgers = Files(), Keys(), Ledgers()
        self._leftovers = Leftovers()

    def prove(self) -> Proof:
        """Carry out all trials; raises NotOnce with what was found, or what the body itself raises in a clean run."""
        self._call.prepare()
        with ExitStack() as stack:
            stack.enter_context(short_leases())
            stack.enter_context(self._leftovers)
            stack.enter_context(only_new_rubbish())
            self._ledgers.save()
            if self._database is not None:
                self._database.save()
                stack.callback(self._database.close)
            stack.callback(self._put_back_things)
            return self._proven()

    def _proven(self) -> Proof:
        (first, _), (clean, points) = self._clean(), self._clean()
        changing = volatile(first, clean)
        left_out = changing | self._ignore
        trials = list(self._trials(points))
        findings = []
        for number, trial in enumerate(trials, 1):
            self._progress(number, len(trials))
            findings += self._tried(trial, clean, left_out)
        told, shown = tuple(touch.what for touch in points), tuple(sorted(changing - self._ignore))
        if findings:
            raise NotOnce(self._call.name, findings, told, shown, self._notes())
        return Proof(self._call.name, told, len(trials), shown, self._notes())

    def _clean(self) -> tuple[State, list[Touch]]:
        attempts = self._carried_out(lambda: [self._call.deliver(self._attempt(), new_message())])
        if isinstance(attempts[0].outcome, Exception):
            raise attempts[0].outcome
        return self._state(attempts), attempts[0].touches

    def _tried(self, trial: Trial, clean: State, left_out: frozenset[str]) -> list[Finding]:
        attempts = self._carried_out(trial.carry_out)
        found = differences(clean, self._state(attempts), left_out)
        return [Finding(trial.words, found)] if found else []

    def _carried_out(self, step: Callable[[], list[Attempt]]) -> list[Attempt]:
        if self._database is not None:
            self._database.put_back()
        self._put_back_things()
        with watched():
            attempts = step()
        self._leftovers.end()
        return attempts

    def _put_back_things(self) -> None:
        self._files.put_back()
        self._keys.put_back()
        self._ledgers.put_back()

    def _state(self, attempts: list[Attempt]) -> State:
        return State(
            rows=self._database.rows() if self._database is not None else {},
            things={**self._files.state(), **self._keys.state()},
            made=tuple(touch for attempt in attempts for touch in attempt.made),
        )

    def _attempt(self, *, dies: Point | None = None, meets: tuple[int, Meeting] | None = None) -> Attempt:
        at_death = self._database.at_death if self._database is not None else lambda: None
        return Attempt(files=self._files, keys=self._keys, dies=dies, meets=meets, at_death=at_death)

    def _trials(self, points: list[Touch]) -> Iterator[Trial]:
        yield Trial("delivered twice", self._twice)
        if self._call.is_named_by_arguments:
            yield Trial("sent twice by its caller", self._sent_twice)
        for at, touch in enumerate(points):
            if touch.changes:
                for side in (Point("before", at), Point("after", at)):
                    words = f"killed {side.side} {touch.what} (point {at + 1} of {len(points)}), and delivered again"
                    yield Trial(words, self._killed_at(side))
        if self._database is None or self._database.meets:
            for at, touch in enumerate(points[1:], 1):
                words = f"delivered again while it was about to do {touch.what} (point {at + 1} of {len(points)})"
                yield Trial(words, self._met_at(at))

    def _twice(self) -> list[Attempt]:
        message = new_message()
        first = self._call.deliver(self._attempt(), message)
        return [first, *self._again(message)]

    def _sent_twice(self) -> list[Attempt]:
        return [self._call.deliver(self._attempt(), new_message()), *self._again(new_message())]

    def _again(self, message: str) -> list[Attempt]:
        self._leftovers.end()
        if self._database is not None:
            self._database.revive()
        return self._call.deliver_until_done(self._attempt, message)

    def _killed_at(self, point: Point) -> Callable[[], list[Attempt]]:
        def killed() -> list[Attempt]:
            message = new_message()
            first = self._call.deliver(self._attempt(dies=point), message)
            return [first, *self._again(message)]

        return killed

    def _met_at(self, at: int) -> Callable[[], list[Attempt]]:
        def met() -> list[Attempt]:
            message, meeting = new_message(), Meeting()
            first, second = self._attempt(meets=(at, meeting)), self._attempt()
            one, two = self._started(first, message), None
            if meeting.reached.wait(PATIENCE):
                two = self._started(second, message)
                two.join(_OVERLAP)
            meeting.let_go()
            for thread in filter(None, (one, two)):
                thread.join(PATIENCE)
            late = self._again(message) if any(is_busy(each.outcome) for each in (first, second)) else []
            return [first, second, *late]

        return met

    def _started(self, attempt: Attempt, message: str) -> threading.Thread:
        thread = threading.Thread(
            target=copy_context().run, args=(self._call.deliver, attempt, message), name="delivery", daemon=True
        )
        thread.start()
        return thread

    def _notes(self) -> tuple[str, ...]:
        if self._database is None:
            return ("no database was given, so none was compared: prove_once(..., database=engine)",)
        return (self._database.note,) if self._database.note else ()
