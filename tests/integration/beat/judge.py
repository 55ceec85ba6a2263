"""What can happen to beats, and a judge of what they sent meanwhile.

Each disturbance returns once somebody leads again, and notes for how many seconds nothing could be sent: from the blow
to the first tick that goes out after it.
"""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from effectonce.ports import is_transactional
from tests.integration.beat.harness import Beat, Place


@dataclass
class Verdict:
    """What came of one entry, whose instants lie *every* seconds apart."""

    instants: list[float]
    missing: list[float]
    under_two_ids: list[float]
    repeated: int


def judge(place: Place, entry: str, every: float) -> Verdict:
    """Look at all messages of an entry: each instant from the first to the last, its ids, and how often it came."""
    sent = [each for each in place.sent() if each.entry == entry]
    ids: dict[float, set[str]] = {}
    for each in sent:
        ids.setdefault(each.instant.timestamp(), set()).add(each.task_id)
    first, last = min(ids), max(ids)
    grid = [first + every * number for number in range(round((last - first) / every) + 1)]
    return Verdict(
        instants=sorted(ids),
        missing=[each for each in grid if each not in ids],
        under_two_ids=[instant for instant, found in ids.items() if len(found) > 1],
        repeated=sum(Counter((each.instant, each.task_id) for each in sent).values()) - len(ids),
    )


@dataclass
class Stand:
    """Two beats at a place, and what is done to them; *gaps* holds the seconds that each blow cost."""

    place: Place
    beats: list[Beat]
    gaps: dict[str, list[float]] = field(default_factory=dict)
    started: int = 2

    @classmethod
    def of(cls, place: Place) -> "Stand":
        """Two beats, one of which leads and has sent something."""
        stand = cls(place, [place.beat("beat-0"), place.beat("beat-1")])
        for beat in stand.beats:
            beat.wait_ready()
        place.leader(*stand.beats)
        place.wait_sent(1)
        return stand

    def kill(self) -> None:
        """SIGKILL for the leader, at whatever it is doing; it is started again when another leads."""
        victim, other = self._leader_and_other()
        with self._measured("kill -9"):
            victim.kill()
            self.place.wait(other.leads, "the other leads")
        victim.start()
        victim.wait_ready()

    def freeze(self) -> None:
        """SIGSTOP for the leader until another leads and sends, then SIGCONT."""
        victim, other = self._leader_and_other()
        with self._measured("SIGSTOP"):
            victim.pause()
            self.place.wait(other.leads, "the other leads")
        victim.resume()
        self.place.wait(lambda: not victim.leads(), "the zombie knows")

    def roll(self, *, beats: int = 2) -> None:
        """A rolling deployment: a new beat comes, an old one goes, and so on."""
        for old in self.beats[:beats]:
            new = self.place.beat(f"beat-{self.started}")
            self.started += 1
            new.wait_ready()
            with self._measured("rolling deploy"):
                old.stop()
                self.beats = [each for each in self.beats if each is not old] + [new]
                self.place.leader(*self.beats)

    def restart_store(self) -> None:
        """The server of the ledger ends and starts again."""
        assert self.place.store is not None
        with self._measured("store restart"):
            self.place.store.restart()
            self.place.leader(*self.beats)

    def restart_broker(self) -> None:
        """The broker ends and starts again."""
        with self._measured("broker restart"):
            self.place.broker.restart()
            self.place.leader(*self.beats)

    def settle(self, entry: str) -> None:
        """Wait until what the dead have left in an outbox is sent too, and end all beats."""
        self.place.wait_sent(2, entry=entry)
        if is_transactional(self.place.ledger):
            outbox = self.place.ledger.outbox
            self.place.wait(lambda: outbox.depth().ready == 0, "what the dead have left is sent")
        for beat in self.beats:
            beat.stop()

    @property
    def blows(self) -> dict[str, Callable[[], None]]:
        """All of them by name."""
        return {
            "kill -9": self.kill,
            "SIGSTOP": self.freeze,
            "rolling deploy": self.roll,
            "store restart": self.restart_store,
            "broker restart": self.restart_broker,
        }

    def _leader_and_other(self) -> tuple[Beat, Beat]:
        leader = self.place.leader(*self.beats)
        (other,) = {*self.beats} - {leader}
        return leader, other

    def _measured(self, name: str) -> "_Gap":
        return _Gap(self, name)


class _Gap:
    """The seconds from a blow to the first tick that is sent after the end of the block."""

    def __init__(self, stand: Stand, name: str) -> None:
        self._stand, self._name = stand, name

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._stand.place.wait_sent(1)
            self._stand.gaps.setdefault(self._name, []).append(time.monotonic() - self._began)
