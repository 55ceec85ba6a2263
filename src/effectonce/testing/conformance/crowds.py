"""Many at once: threads that want the same thing of one store."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from effectonce.domain.claims import Claim, Granted, Refused, State
from effectonce.ports import LedgerStore
from effectonce.testing.conformance.clocks import PATIENCE
from effectonce.testing.conformance.scene import (
    DONE,
    HOUR,
    MOMENT,
    Suite,
    entry_of,
    granted,
    new_claim,
    next_attempt,
)

Answer = TypeVar("Answer")

CROWD = 16
ROUNDS = 10


class Crowds(Suite):
    """Rules that hold when many ask at the same instant."""

    def test_of_many_first_claims_one_is_granted(self, store: LedgerStore) -> None:
        """A71: nobody looks first and inserts after that."""
        for _ in range(ROUNDS):
            claim = new_claim()
            answers = at_once([_claiming(store, next_attempt(claim)) for _ in range(CROWD)])
            winner = _only_grant(answers)
            assert (entry_of(store, claim).attempt, entry_of(store, claim).fence) == (winner.attempt, winner.fence)

    def test_of_many_takeovers_one_is_granted_and_one_death_is_counted(self, store: LedgerStore) -> None:
        for _ in range(ROUNDS):
            claim = new_claim()
            self.abandoned(store, claim)
            answers = at_once([_claiming(store, next_attempt(claim)) for _ in range(CROWD)])
            winner = _only_grant(answers)
            assert (winner.takeover, winner.deaths) == (True, 1)
            assert (entry_of(store, claim).deaths, entry_of(store, claim).attempt) == (1, winner.attempt)

    def test_of_many_retries_one_re_enters(self, store: LedgerStore) -> None:
        claim = new_claim()
        held = granted(store, claim)
        _only_grant(at_once([_claiming(store, next_attempt(claim, reenter=held.fence)) for _ in range(CROWD)]))

    def test_a_late_end_and_a_takeover_do_not_both_succeed(self, store: LedgerStore) -> None:
        for _ in range(ROUNDS * 2):
            claim = new_claim()
            slept = self.abandoned(store, claim)
            completed, heir = at_once([_completing(store, slept), _claiming(store, next_attempt(claim))])
            assert (completed is True) is not isinstance(heir, Granted)
            state = State.COMPLETED if completed else State.CLAIMED
            assert entry_of(store, claim).state is state

    def test_of_many_rescuers_one_frees_a_claim(self, store: LedgerStore) -> None:
        gone = []
        for _ in range(CROWD):
            gone.append(held := granted(store, new_claim(lease=MOMENT)))
            self.until_ended(store, held, ago=2 * MOMENT)
        freed = [entry.digest for batch in at_once([lambda: store.rescue(1000)] * 4) for entry in batch]
        mine = {held.digest for held in gone}
        assert sorted(digest for digest in freed if digest in mine) == sorted(mine)
        assert {entry_of(store, held).deaths for held in gone} == {1}

    def test_effects_do_not_stand_in_each_others_way(self, store: LedgerStore) -> None:
        claims = [new_claim(lease=HOUR) for _ in range(CROWD)]
        answers = at_once([_until_granted(store, claim) for claim in claims])
        assert {answer.digest for answer in answers} == {claim.digest for claim in claims}


def at_once(questions: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Ask all questions at one instant, each in a thread of its own."""
    start = threading.Barrier(len(questions))

    def ask(question: Callable[[], Answer]) -> Answer:
        start.wait(PATIENCE)
        return question()

    with ThreadPoolExecutor(len(questions)) as threads:
        return list(threads.map(ask, questions))


def _claiming(store: LedgerStore, claim: Claim) -> Callable[[], object]:
    return lambda: store.claim(claim)


def _completing(store: LedgerStore, held: Granted) -> Callable[[], object]:
    return lambda: store.complete(held, DONE)


def _until_granted(store: LedgerStore, claim: Claim) -> Callable[[], Granted]:
    """Ask until it is granted: a store that locks more than one key may say busy for nothing, but not for long."""

    def ask() -> Granted:
        deadline = time.monotonic() + PATIENCE
        while isinstance(answer := store.claim(claim), Refused):
            assert answer.entry is None
            assert time.monotonic() < deadline
        return answer

    return ask


def _only_grant(answers: Sequence[object]) -> Granted:
    grants = [answer for answer in answers if isinstance(answer, Granted)]
    assert len(grants) == 1
    assert all(isinstance(answer, Refused) for answer in answers if answer not in grants)
    return grants[0]
