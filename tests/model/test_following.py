"""One running and one more, in every order: no change that came during a run is lost.

The ledger is the memory store itself, and `admit`, `judge` and `follow` are the product's. Each question to it is one
step; between two steps of a message anything may happen to the others: they are sent, delivered twice, die, sleep past
their lease. A message is *heeded* when a body that began after it was sent has ended well.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import pytest

from effectonce.domain.claims import Busy, Claim, Entry, Granted, Outcome, Refused, State, judge
from effectonce.domain.following import Following
from effectonce.stores.memory import MemoryLedger

LEASE = 10.0


@dataclass(frozen=True)
class Copy:
    """A message's copy: queued, or with an answer that it was busy, or with a body that runs."""

    who: int
    busy: Entry | None = None
    granted: Granted | None = None
    heeds: frozenset[int] = frozenset()


@dataclass(frozen=True)
class World:
    """*records*: what the ledger holds. *left*: how many more messages, doubles, deaths and lapses there may be."""

    records: Any
    now: float
    grants: int
    copies: tuple[Copy, ...]
    sent: frozenset[int]
    heeded: frozenset[int]
    left: tuple[int, int, int, int]


Decide = Callable[[Following], bool]
"""Whether a message is dropped on this answer."""


def drops(following: Following) -> bool:
    return following is Following.ANOTHER


class Game:
    """All worlds that can follow each other."""

    def __init__(self, *, dropping: Decide = drops, ledger: type[MemoryLedger] = MemoryLedger) -> None:
        self._dropping, self._kind = dropping, ledger

    def walk(self, *, messages: int, doubles: int, deaths: int, lapses: int) -> tuple[int, list[World]]:
        """How many worlds there are, and those ends in which a message was not heeded."""
        start = World({}, 1000.0, 0, (), frozenset(), frozenset(), (messages, doubles, deaths, lapses))
        seen, waiting, wrong = {_key(start)}, [start], []
        while waiting:
            world = waiting.pop()
            if not world.copies and world.sent != world.heeded:
                wrong.append(world)
            for following in self._steps(world):
                if _key(following) not in seen:
                    seen.add(_key(following))
                    waiting.append(following)
        return len(seen), wrong

    def _steps(self, world: World) -> Iterator[World]:
        messages, doubles, deaths, lapses = world.left
        if messages:
            sent = replace(world, sent=world.sent | {messages}, left=(messages - 1, doubles, deaths, lapses))
            yield _with(sent, Copy(messages))
        alive = any(copy.granted for copy in world.copies)
        if lapses or not alive:
            later = replace(world, now=world.now + 1.5 * LEASE)
            yield replace(later, left=(messages, doubles, deaths, max(0, lapses - alive)))
        for at, copy in enumerate(world.copies):
            rest = replace(world, copies=world.copies[:at] + world.copies[at + 1 :])
            if doubles:
                yield _with(replace(rest, left=(messages, doubles - 1, deaths, lapses)), copy, Copy(copy.who))
            if deaths and copy != Copy(copy.who):
                yield _with(replace(rest, left=(messages, doubles, deaths - 1, lapses)), Copy(copy.who))
            yield self._step(rest, copy)

    def _step(self, rest: World, copy: Copy) -> World:
        ledger = self._kind(clock=lambda: rest.now)
        ledger._records = deepcopy(rest.records)
        if copy.granted is not None:
            ended = ledger.complete(copy.granted, Outcome(state=State.COMPLETED))
            rest = replace(rest, records=ledger._records)
            return replace(rest, heeded=rest.heeded | copy.heeds) if ended else _with(rest, Copy(copy.who))
        if copy.busy is not None:
            following = ledger.follow(copy.busy, _claim(rest, copy).identity)
            rest = replace(rest, records=ledger._records)
            return rest if self._dropping(following) else _with(rest, Copy(copy.who))
        answer = ledger.claim(_claim(rest, copy))
        if isinstance(answer, Granted):
            rest = replace(rest, records=ledger._records, grants=rest.grants + 1)
            return _with(rest, Copy(copy.who, granted=answer, heeds=rest.sent))
        return self._refused(rest, copy, answer)

    def _refused(self, rest: World, copy: Copy, answer: Refused) -> World:
        verdict = judge(answer, _claim(rest, copy))
        if not isinstance(verdict, Busy):
            return rest
        return _with(rest, copy if verdict.own else Copy(copy.who, busy=verdict.entry))


def _claim(world: World, copy: Copy) -> Claim:
    return Claim(
        digest=b"d" * 16,
        key="sync",
        attempt=(world.grants + 1).to_bytes(8, "big"),
        identity=copy.who.to_bytes(16, "big"),
        task_id=str(copy.who),
        fingerprint=b"",
        lease=LEASE,
        max_takeovers=100,
        recurs=True,
    )


def _with(world: World, *copies: Copy) -> World:
    return replace(world, copies=tuple(sorted((*world.copies, *copies), key=repr)))


def _key(world: World) -> str:
    return repr((world.records, world.copies, world.sent, world.heeded, world.left, world.grants))


class Forgetful(MemoryLedger):
    """A mutant: the next grant does not forget the follower of the last one."""

    def claim(self, claim: Claim) -> Granted | Refused:
        before = self._records.get(claim.digest)
        answer = super().claim(claim)
        if before is not None:
            self._records[claim.digest].follower = before.follower
        return answer


@pytest.mark.parametrize(
    "faults",
    [{"doubles": 0, "deaths": 0, "lapses": 0}, {"doubles": 1, "deaths": 1, "lapses": 0}],
    ids=["three messages", "a double and a death"],
)
def test_every_message_is_followed_by_a_body_that_began_after_it(faults: dict[str, int]) -> None:
    worlds, wrong = Game().walk(messages=3 if not any(faults.values()) else 2, **faults)
    assert worlds > 100
    assert wrong == []


def test_a_sleeper_takes_no_change_with_it() -> None:
    """It is fenced when it wakes, and its copy looks again."""
    worlds, wrong = Game().walk(messages=3, doubles=0, deaths=0, lapses=1)
    assert worlds > 100
    assert wrong == []


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("bounds", [(3, 1, 1, 0), (2, 1, 1, 1), (3, 1, 0, 1)])
def test_more_of_everything(bounds: tuple[int, int, int, int]) -> None:
    messages, doubles, deaths, lapses = bounds
    worlds, wrong = Game().walk(messages=messages, doubles=doubles, deaths=deaths, lapses=lapses)
    assert worlds > 1000
    assert wrong == []


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(Game(dropping=lambda following: following is not Following.NEXT), id="drops when it moved"),
        pytest.param(Game(dropping=lambda _: True), id="drops always"),
        pytest.param(Game(ledger=Forgetful), id="an old follower counts"),
    ],
)
def test_the_model_finds_what_would_lose_a_change(mutant: Game) -> None:
    _, wrong = mutant.walk(messages=3, doubles=0, deaths=0, lapses=0)
    assert wrong
