"""Beats under everything that happens to them, before a judge: no tick missed, none under two ids, each effect once."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Self

import pytest
from celery import Celery

from effectonce.app.beat.scheduler import OnceScheduler
from effectonce.lab.process_tree import wait_until
from effectonce.ports import is_transactional
from tests.integration.beat.harness import Place
from tests.integration.beat.judge import Stand, judge
from tests.integration.beat.ticking import Ticked, project
from tests.services import Fleet, PostgreSQL, Redis

EVERY = 0.5
SCHEDULE = {"report": {"schedule": EVERY}, "rare": {"schedule": 3.0}}
CHANGES = 30


@pytest.fixture
def place(fleet: Fleet, redis_server: Redis, postgresql_server: PostgreSQL) -> Iterator[Place]:
    del redis_server, postgresql_server  # ours to end
    with Place(fleet, "postgresql", SCHEDULE, BEAT_MISSED="all") as place:
        yield place


@pytest.fixture(params=["postgresql", "redis"])
def each_place(fleet: Fleet, redis_server: Redis, request: pytest.FixtureRequest) -> Iterator[Place]:
    """On Redis the ledger's server is the broker's."""
    del redis_server
    if request.param == "postgresql":
        request.getfixturevalue("postgresql_server")
    with Place(fleet, request.param, SCHEDULE, BEAT_MISSED="all") as place:
        yield place


def assert_judged(stand: Stand, *, deaths: int) -> None:
    """A sender that dies between sending and striking off may send once more, with the same id; nothing else may."""
    place = stand.place
    stand.settle("report")
    for entry, every in (("report", EVERY), ("rare", 3.0)):
        verdict = judge(place, entry, every)
        assert verdict.missing == [], place.logs()[-6000:]
        assert verdict.under_two_ids == []
        assert verdict.repeated <= deaths


def assert_effects(place: Place) -> None:
    """A worker takes all messages: each tick takes effect once."""
    sent = {(each.entry, each.instant.isoformat()) for each in place.sent()}
    place.worker("judge", pool="solo")
    notes = place.folder / "notes"
    place.wait(lambda: not place.queue.llen("celery"), "all is taken", seconds=60)
    place.wait(lambda: notes.exists() and len(notes.read_text().splitlines()) >= len(sent), "all is worked on")
    ran = Counter(tuple(line.split()) for line in notes.read_text().splitlines())
    assert set(ran) >= sent
    assert set(ran.values()) == {1}


def test_every_tick_is_sent_once_whatever_happens(place: Place) -> None:
    stand = Stand.of(place)
    for blow in (stand.restart_store, stand.kill, stand.restart_broker, stand.freeze):
        blow()
    stand.roll(beats=1)
    assert_judged(stand, deaths=4)
    assert_effects(place)


@pytest.mark.parametrize(
    "ledger",
    ["redis", "sqlite", *(pytest.param(each, marks=pytest.mark.soak) for each in ("postgresql", "mariadb"))],
)
def test_thirty_changes_of_leader_in_one_process(
    redis_url: str, ledger: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Leaders that resign, die without a word, or are cut off and go on: quickly, since nothing has to boot."""
    url = f"sqlite:///{tmp_path / 'ledger'}" if ledger == "sqlite" else request.getfixturevalue(f"{ledger}_url")
    every = {"steady": {"task": "work", "schedule": 0.1, "options": {"effectonce_missed": "all"}}}
    app = project(redis_url, url, "celery.beat:Scheduler", lease=0.3, beat_schedule=every)
    app.effectonce.ledger.create_schema()
    with Court(app) as court:
        for number in range(CHANGES):
            court.change((court.resign, court.die, court.cut_off)[number % 3])
        court.settle()
        sent = [(each["effectonce_tick"], each["id"]) for each in court.beat.sent("steady")]
    app.effectonce.ledger.close()
    moments = sorted({datetime.fromisoformat(tick) for tick, _ in sent})
    assert {later - each for each, later in pairwise(moments)} == {timedelta(milliseconds=100)}
    assert len({task_id for _, task_id in sent}) == len(moments)
    assert court.terms >= CHANGES
    assert len(sent) - len(moments) <= court.terms


class Court:
    """Two schedulers that are ticked in turn, one of which reigns."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.terms = 0

    def __enter__(self) -> Self:
        self.schedulers = [OnceScheduler(self.app), OnceScheduler(self.app)]
        self.beat = Ticked(self.app, self.schedulers[0])
        self._until(lambda: self._leader() is not None)
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.schedulers:
            each.close()

    def change(self, blow: Callable[[OnceScheduler], None]) -> None:
        """Do something to the leader, until there is another term under which something was sent."""
        self._until(lambda: self._leader() is not None)
        leader = self._leader()
        assert leader is not None
        assert leader._reign is not None
        term = leader._reign.term
        blow(leader)

        def succeeded() -> bool:
            other = self._leader()
            return other is not None and other._reign is not None and other._reign.term.fence > term.fence

        self._until(succeeded)
        self.terms += 1

    def resign(self, leader: OnceScheduler) -> None:
        assert leader._elector is not None
        leader._elector.resign(why="a test", pause=0.5)

    def die(self, leader: OnceScheduler) -> None:
        """Without a word: its term ends by itself; another process takes its place."""
        assert leader._elector is not None
        assert leader._elector._thread is not None
        leader._elector._stopped.set()
        leader._elector._thread.join()
        if leader._relay is not None:
            leader._relay.stop()
        self.schedulers[self.schedulers.index(leader)] = OnceScheduler(self.app)

    def cut_off(self, leader: OnceScheduler) -> None:
        """Its renewals do not arrive; it is ticked all the same."""
        elector = leader._elector
        assert elector is not None
        with elector._asking:
            self._until(lambda: elector.term is None)

    def settle(self) -> None:
        """Until nothing waits."""
        ledger = self.app.effectonce.ledger
        if is_transactional(ledger):
            self._until(lambda: ledger.outbox.depth().ready == 0)
        self._until(lambda: not ledger.schedule.unmarked(ledger.schedule.seats()[0].name))

    def _leader(self) -> OnceScheduler | None:
        return next((each for each in self.schedulers if each._elector and each._elector.term and each._reign), None)

    def _until(self, happened: Callable[[], bool]) -> None:
        def ticked() -> bool:
            for each in self.schedulers:
                each.tick()
            return happened()

        assert wait_until(ticked, seconds=40)


@pytest.mark.soak
def test_every_tick_is_sent_once_over_thirty_changes_of_leader(each_place: Place) -> None:
    stand = Stand.of(each_place)
    chance = random.Random(42)  # noqa: S311 - the same run each time, not a secret
    for _ in range(CHANGES):
        chance.choice([stand.kill, stand.freeze, stand.roll])()
        if chance.random() < 0.2:
            chance.choice([stand.restart_store, stand.restart_broker])()
    assert_judged(stand, deaths=2 * CHANGES)
    assert_effects(each_place)
