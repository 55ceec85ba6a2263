"""Many trials, several at once, each in a process of its own with servers of its own."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, Final

from effectonce.lab.processes import Process
from effectonce.lab.reaper import Reaper
from effectonce.lab.scenarios.scenario import Scenario
from effectonce.lab.trials.parts import RABBITMQ, Parts, parts

SECONDS: Final = 300.0
"""The most that one trial may take."""

Row = dict[str, Any]
"""What came out of one trial, as `trials.one` writes it, or why there was none (``missing``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """One scenario and one contender."""

    scenario: Scenario
    contender: str


def run_trials(
    pairings: Sequence[Pairing],
    *,
    jobs: int,
    broker: str | None,
    ledger: str | None,
    tell: Callable[[Row, int, int], None],
) -> list[Row]:
    """Carry out all *pairings*, *jobs* at a time, the slowest first; answers in the order given.

    *tell* gets each row as it comes, how many are done, and how many there are. Nothing is left behind, whatever
    happens: what was started ends with this process.
    """
    needs = frozenset(need for each in pairings for need in _needs(each.scenario))
    with _folder() as folder, parts(folder, broker=broker, ledger=ledger, needs=needs) as found, _crew(jobs) as crew:
        rows: dict[int, Row] = {}
        by_length = sorted(range(len(pairings)), key=lambda each: -pairings[each].scenario.seconds)
        futures = {crew.begin(pairings[each], found, folder / f"t{each}"): each for each in by_length}
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for each in done:
                rows[futures[each]] = each.result()
                tell(each.result(), len(rows), len(pairings))
    return [rows[index] for index in range(len(pairings))]


class Crew:
    """Threads that each wait for one process. Trials of schedules, which wait for a minute to begin, keep none off."""

    def __init__(self, jobs: int, reaper: Reaper) -> None:
        self._work, self._schedules = ThreadPoolExecutor(jobs), ThreadPoolExecutor(jobs)
        self._reaper = reaper
        self._stopped = Event()

    def begin(self, pairing: Pairing, found: Parts, folder: Path) -> "Future[Row]":
        """Carry out one trial as soon as there is a place."""
        pool = self._schedules if pairing.scenario.schedule else self._work
        return pool.submit(self.one, pairing, found, folder)

    def stop(self) -> None:
        """Begin nothing more, end what runs, and return when it has ended."""
        self._stopped.set()
        for pool in (self._work, self._schedules):
            pool.shutdown(wait=False, cancel_futures=True)
        for pool in (self._work, self._schedules):
            pool.shutdown()

    def one(self, pairing: Pairing, found: Parts, folder: Path) -> Row:
        """Carry out one trial."""
        told = {"scenario": pairing.scenario.name, "contender": pairing.contender}
        lacking = found.missing(_needs(pairing.scenario))
        if lacking is not None:
            return {**told, "missing": lacking}
        folder.mkdir(mode=0o711)
        task = json.dumps({**told, "folder": str(folder), "parts": asdict(found)})
        command = [sys.executable, "-m", "effectonce.lab.trials", task]
        process = Process(command, log=folder / "log", cwd=folder, reaper=self._reaper).start()
        try:
            ended = process.wait_end(seconds=SECONDS, unless=self._stopped.is_set)
        finally:
            process.stop()
        out = folder / "out.json"
        if ended and out.exists():
            row: Row = json.loads(out.read_text())
            return row
        why = "it took too long" if not ended else (folder / "log").read_text(errors="replace")[-2000:]
        return {**told, "words": ["broken"], "outcome": {"broken": why}, "moments": [], "seconds": SECONDS}


def _needs(scenario: Scenario) -> frozenset[str]:
    return scenario.needs | ({RABBITMQ} if scenario.rabbitmq else frozenset())


@contextmanager
def _folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="effectonce-lab-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL runs as another user and has its folder inside
        yield folder


@contextmanager
def _crew(jobs: int) -> Iterator[Crew]:
    with ExitStack() as undo:
        reaper = Reaper()
        undo.callback(reaper.close)
        crew = Crew(jobs, reaper)
        undo.callback(crew.stop)
        yield crew
