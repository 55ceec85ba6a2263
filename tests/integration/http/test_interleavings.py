"""However the retries of some requests are interleaved, refused, broken off and killed: one effect for each request."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from effectonce import EffectOnce, FenceRefused
from effectonce.http.answers import Answer
from effectonce.http.desk import Desk, Seen, Terms
from effectonce.lab.process_tree import wait_until
from tests.integration.http.sites import WsgiSite, orders
from tests.services import Fleet

if TYPE_CHECKING:
    from effectonce.app.http import Conversation

REQUESTS = 3
MOVES = st.lists(
    st.tuples(st.sampled_from(["send", "work", "answer", "fail", "vanish"]), st.integers(0, REQUESTS - 1)), max_size=14
)


@pytest.fixture(scope="module")
def site(fleet: Fleet) -> Iterator[WsgiSite]:
    """One database for all examples; each example has keys of its own."""
    url = fleet.postgresql().fresh_url()
    site = WsgiSite(url).using(lease_seconds=0.2)
    yield site
    site.close()
    fleet.postgresql().put_back(url)


class Game:
    """Callers that send their request again and again, and a server that does one step at a time."""

    def __init__(self, once: EffectOnce, name: str) -> None:
        self.name = name
        self.once = once
        self.desk = Desk(Terms(once=once, lease_seconds=0.2))
        self.open: dict[int, list[Conversation]] = {nth: [] for nth in range(REQUESTS)}
        self.answers: dict[int, set[bytes]] = {nth: set() for nth in range(REQUESTS)}

    def play(self, move: str, nth: int) -> None:
        """Do one step for the request *nth*."""
        if move == "send":
            self.send(nth)
        elif self.open[nth]:
            {"work": self.work, "answer": self.answer, "fail": self.fail, "vanish": self.vanish}[move](nth)

    def send(self, nth: int) -> None:
        seen = Seen(method="POST", path="/orders", query="", content_type="", keys=[])
        conversation = self.desk.converse(seen, f"{self.name}-{nth}", caller="ann", body=bytes([nth]))
        instead = self.desk.admit(conversation)
        if instead is None:
            self.open[nth].append(conversation)
        elif instead.status != 409:
            assert instead.status == 201
            self.answers[nth].add(instead.body)

    def work(self, nth: int) -> None:
        """The endpoint writes its row; one that has lost its claim is refused and lets go."""
        conversation = self.open[nth][-1]
        if conversation.exchange.work is not None:
            return
        try:
            session = conversation.exchange.open().face
            session.execute(orders.insert().values(number=int(self.name) * REQUESTS + nth))
        except FenceRefused:
            self.open[nth].pop().exchange.let_go()

    def answer(self, nth: int) -> None:
        self.work(nth)
        if not self.open[nth]:
            return
        conversation = self.open[nth].pop()
        assert conversation.exchange.claim is not None
        said = Answer(status=201, headers=[], body=conversation.exchange.claim.attempt)
        given = self.desk.settle(conversation, said, is_whole=True)
        if given.status == 201:
            self.answers[nth].add(given.body)

    def fail(self, nth: int) -> None:
        self.desk.settle(self.open[nth].pop(), Answer(status=500, headers=[], body=b""), is_whole=True)

    def vanish(self, nth: int) -> None:
        """A process is killed: its transaction is gone, and its claim stands until its lease ends."""
        exchange = self.open[nth].pop().exchange
        exchange.undo()
        exchange._holding.close()

    def end(self) -> None:
        """All that is under way vanishes; then each caller retries until it has an answer."""
        for nth in range(REQUESTS):
            while self.open[nth]:
                self.vanish(nth)
            assert wait_until(partial(self.answered, nth), seconds=30)

    def answered(self, nth: int) -> bool:
        self.send(nth)
        if self.open[nth]:
            self.work(nth)
            self.answer(nth)
        return bool(self.answers[nth])


_games = iter(range(1, 1_000_000))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=MOVES)
def test_any_interleaving_of_retries_of_n_requests_gives_n_effects(
    site: WsgiSite, moves: list[tuple[str, int]]
) -> None:
    game = Game(site.once, str(next(_games)))
    before = len(site.numbers)
    for move, nth in moves:
        game.play(move, nth)
    game.end()
    made = site.numbers[before:]
    assert sorted(made) == [int(game.name) * REQUESTS + nth for nth in range(REQUESTS)]
    assert [len(answers) for answers in game.answers.values()] == [1] * REQUESTS
