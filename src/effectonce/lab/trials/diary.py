"""What happened in the processes of a trial, and when.

Bodies write apart from every transaction, so it says how often a body *ran*, whatever became of its work.
"""

import os
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

from effectonce.lab.lines import Lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One thing that happened: *what* is a word, *at* seconds since 1970 by this machine's true clock."""

    at: float
    what: str
    pid: int
    intent: str = ""
    message: str = ""
    text: str = ""


class Diary:
    """The file of one trial."""

    def __init__(self, path: Path) -> None:
        self._lines = Lines(path)
        self.moments: list[Moment] = []

    def note(self, what: str, *, pid: int = 0, intent: str = "", message: str = "", text: str = "") -> None:
        """Append one moment, now."""
        moment = Moment(at=now(), what=what, pid=pid or os.getpid(), intent=intent, message=message, text=text)
        self._lines.append(asdict(moment))

    def read(self) -> list[Moment]:
        """Take in what was appended; answers all there is."""
        self.moments += [Moment(**line) for line in self._lines.news()]
        return self.moments

    def count(self, what: str, intent: str | None = None) -> int:
        """Tell how often it happened."""
        return sum(1 for each in self.read() if each.what == what and intent in {None, each.intent})

    def bodies(self) -> Counter[str]:
        """Tell how often the body of each intent began."""
        return Counter(each.intent for each in self.read() if each.what == "began")

    def running(self) -> list[Moment]:
        """Return the beginnings of bodies that have neither ended nor died."""
        under_way: dict[tuple[int, str, str], Moment] = {}
        for each in self.read():
            match each.what:
                case "began":
                    under_way[each.pid, each.intent, each.message] = each
                case "ended":
                    under_way.pop((each.pid, each.intent, each.message), None)
                case "killed":
                    under_way = {key: value for key, value in under_way.items() if key[0] != each.pid}
                case _:
                    pass
        return list(under_way.values())


def now() -> float:
    """The true time, whatever a trial's skew has made of ``time.time``."""
    return time.clock_gettime(time.CLOCK_REALTIME)
