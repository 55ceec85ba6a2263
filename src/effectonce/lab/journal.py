"""What happened in the processes of a demo, as facts in one file that is only appended to.

Bodies write here apart from every transaction, so it says how often a body *ran*, whatever became of its work. Who
kills freezes its victim first and notes the kill before it strikes, so the order of the lines is the order of what
happened.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from effectonce.lab.lines import Lines

Death = Literal["child_killed", "worker_killed"]
What = Literal["delivered", "began", "charged", "ended"] | Death


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that happened in process *pid*; a kill says nothing but who dies.

    *message* is the id of the message; *redelivered* is what the broker says of it.
    """

    what: What
    pid: int
    task: str = ""
    order: int = 0
    message: str = ""
    redelivered: bool = False


@dataclass(slots=True, kw_only=True)
class Run:
    """One body, from its start to its end or to the kill of its process."""

    task: str
    order: int
    message: str
    pid: int
    charged: bool = False
    over: bool = False
    death: Death | None = None


class Journal:
    """The file. Processes `note`; the demo calls `read` and then looks at what it has learnt."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self.deliveries: list[Fact] = []
        self.runs: list[Run] = []
        self.overlaps: list[Fact] = []
        """Deliveries by a broker that repeats a message while a body of this very message runs."""

    def note(self, fact: Fact) -> None:
        """Append one fact."""
        self._lines.append(asdict(fact))

    def read(self) -> None:
        """Take in what was appended since the last time."""
        for line in self._lines.news():
            self._take(Fact(**line))

    def running(self, task: str, order: int) -> Run | None:
        """Return a body that has charged this order and is not over."""
        mine = (run for run in self.runs if (run.task, run.order) == (task, order))
        return next((run for run in mine if run.charged and not run.over), None)

    def overlap(self, task: str, order: int) -> bool:
        """Tell whether a message of this order came again while its body ran."""
        return any((fact.task, fact.order) == (task, order) for fact in self.overlaps)

    def _take(self, fact: Fact) -> None:
        match fact.what:
            case "delivered":
                self.deliveries.append(fact)
                if fact.redelivered and any(run.message == fact.message for run in self._under_way()):
                    self.overlaps.append(fact)
            case "began":
                self.runs.append(Run(task=fact.task, order=fact.order, message=fact.message, pid=fact.pid))
            case "charged":
                for run in self._under_way(fact.pid):
                    run.charged = True
            case "ended":
                for run in self._under_way(fact.pid):
                    run.over = True
            case "child_killed" | "worker_killed":
                for run in self._under_way(fact.pid):
                    run.over, run.death = True, fact.what

    def _under_way(self, pid: int | None = None) -> list[Run]:
        return [run for run in self.runs if not run.over and pid in {None, run.pid}]
