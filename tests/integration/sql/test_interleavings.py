"""Two attempts at one effect in every order of their statements: one effect, no loss, and nobody waits for a body.

On each database, at each isolation level that a user's engine may have.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.domain.claims import Claim, Granted, Outcome, Refused, State
from effectonce.errors import LedgerUnavailable
from effectonce.ports import Conflict, Work
from effectonce.stores.sql import ledger as ledgers
from effectonce.stores.sql import work as works
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance.scene import HOUR, MOMENT, entry_of, granted, new_claim, next_attempt
from tests.integration.sql.scene import DONE, NONE, charge, charges, open_work
from tests.integration.sql.stepping import Actor, every_order

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
PLACES = [*[(kind, level) for kind in ("postgresql", "mariadb") for level in LEVELS], ("sqlite", "SERIALIZABLE")]
TURNS = 5


@dataclass
class Attempt:
    """One delivery: may it be a repeat, and has it claimed already."""

    claim: Claim
    repeats: bool = False
    held: Granted | None = None
    outcome: Outcome = NONE
    log: list[str] = field(default_factory=list)

    def carry_out(self, ledger: SqlLedger, actor: Actor | None) -> str:
        """As the guard does it."""
        if self.repeats and self.held is None:
            answer = _asked(ledger, self.claim)
            if isinstance(answer, Refused):
                return "refused"
            self.held = answer
        for _ in range(TURNS):
            try:
                return self._turn(ledger, actor)
            except Conflict:
                continue
        self._let_go(ledger)
        return "lost too often"

    def _turn(self, ledger: SqlLedger, actor: Actor | None) -> str:
        with open_work(ledger, self.claim, granted=self.held, escape=True) as work:
            answer = work.enter()
            if isinstance(answer, Refused):
                work.rollback()
                self._let_go(ledger)
                return "refused"
            if actor is not None:
                actor.in_body = True
            try:
                return self._body(ledger, work)
            finally:
                if actor is not None:
                    actor.in_body = False

    def _body(self, ledger: SqlLedger, work: Work) -> str:
        try:
            charge(work.connection, self.claim)
        except sa.exc.DBAPIError as error:
            if ledger.is_conflict(error):
                raise Conflict from error
            raise
        if not work.finish(self.outcome):
            return "fenced"
        work.commit()
        return "done"

    def _let_go(self, ledger: SqlLedger) -> None:
        if self.held is not None:
            ledger.release(self.held, retries=0, reset=False, keep=HOUR)


def _asked(ledger: SqlLedger, claim: Claim) -> Granted | Refused:
    try:
        return ledger.claim(claim)
    except LedgerUnavailable:
        return Refused(entry=None)


def two_first(_: SqlLedger) -> Sequence[Attempt]:
    claim = new_claim()
    return [Attempt(claim), Attempt(next_attempt(claim))]


def two_first_with_results(_: SqlLedger) -> Sequence[Attempt]:
    claim = new_claim()
    return [Attempt(claim, outcome=DONE), Attempt(next_attempt(claim), outcome=DONE)]


def first_and_repeat(_: SqlLedger) -> Sequence[Attempt]:
    claim = new_claim()
    return [Attempt(claim), Attempt(next_attempt(claim), repeats=True)]


def two_heirs(ledger: SqlLedger) -> Sequence[Attempt]:
    claim = _abandoned(ledger).claim
    return [Attempt(next_attempt(claim), repeats=True), Attempt(next_attempt(claim), repeats=True)]


def late_holder_and_heir(ledger: SqlLedger) -> Sequence[Attempt]:
    late = _abandoned(ledger)
    return [late, Attempt(next_attempt(late.claim), repeats=True)]


def released_and_first(ledger: SqlLedger) -> Sequence[Attempt]:
    claim = new_claim()
    ledger.release(granted(ledger, claim), retries=0, reset=True, keep=HOUR)
    return [Attempt(next_attempt(claim), repeats=True), Attempt(next_attempt(claim))]


def _abandoned(ledger: SqlLedger) -> Attempt:
    claim = new_claim(lease=MOMENT)
    held = granted(ledger, claim)
    while entry_of(ledger, claim).lease_left > 0:
        pass
    return Attempt(replace(claim, lease=HOUR), repeats=True, held=held)


SCENES: dict[str, Callable[[SqlLedger], Sequence[Attempt]]] = {
    "two first deliveries": two_first,
    "two first deliveries with results": two_first_with_results,
    "a first delivery and a repeat": first_and_repeat,
    "two heirs of one dead": two_heirs,
    "a late holder and its heir": late_holder_and_heir,
    "a repeat and a first one after a release": released_and_first,
}


def scenes() -> Iterator[Any]:
    """Two first deliveries, the ordinary case, in each run; the others are long."""
    for name, scene in SCENES.items():
        yield pytest.param(scene, id=name, marks=() if scene is two_first else pytest.mark.soak)


@pytest.fixture(params=PLACES, ids="-".join)
def database(request: pytest.FixtureRequest) -> str:
    url: str = request.getfixturevalue(f"{request.param[0]}_url")
    return url


@pytest.fixture
def engines(request: pytest.FixtureRequest, engine: sa.Engine) -> Iterator[list[sa.Engine]]:
    """A user's engine for each attempt, at this level."""
    kind, level = request.node.callspec.params["database"]
    connect: dict[str, Any] = {"options": "-c synchronous_commit=off"} if kind == "postgresql" else {}
    made = [sa.create_engine(engine.url, isolation_level=level, connect_args=connect) for _ in range(2)]
    yield made
    for each in made:
        each.dispose()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scene", list(scenes()))
def test_two_attempts_in_every_order_take_effect_once(
    engine: sa.Engine,
    engines: list[sa.Engine],
    ledger: SqlLedger,
    scene: Callable[[SqlLedger], Sequence[Attempt]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (ledgers, works):
        monkeypatch.setattr(module, "CLAIM_WAIT", 0.01)
    players = [SqlLedger.open(each) for each in engines]
    for player in players:
        player.ping()
    orders = 0
    for game in every_order():
        attempts = scene(ledger)
        actors = [_actor(name, *each) for name, each in zip("AB", zip(players, attempts, strict=True), strict=True)]
        game.play(actors)
        _judge(game.order, engine, ledger, actors, attempts[0].claim)
        orders += 1
    assert orders >= 6


def _actor(name: str, player: SqlLedger, attempt: Attempt) -> Actor:
    return Actor(name, player.source.engine, lambda actor: attempt.carry_out(player, actor))


def _judge(order: list[str], engine: sa.Engine, ledger: SqlLedger, actors: Sequence[Actor], claim: Claim) -> None:
    """What was not carried out comes again; then there is one effect."""
    for actor in actors:
        assert actor.error is None, (order, actor.error)
    done = [actor.answer for actor in actors].count("done")
    assert done <= 1, order
    assert charges(engine, claim) == done, order
    for _ in range(2):
        Attempt(next_attempt(claim), repeats=True).carry_out(ledger, None)
    assert charges(engine, claim) == 1, order
    assert entry_of(ledger, claim).state is State.COMPLETED, order
