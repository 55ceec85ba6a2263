"""What a question costs, and what a lost answer does."""

from collections.abc import Callable
from typing import Any

import pytest
import redis
from redis.connection import Connection

from effectonce.domain.claims import Granted, Outcome, State
from effectonce.errors import LedgerUnavailable
from effectonce.stores.redis.ledger import RedisLedger
from effectonce.testing.conformance.scene import DONE, HOUR, entry_of, granted, new_claim, next_attempt, renewal
from tests.integration.redis.wire import counted

Question = Callable[[RedisLedger, Granted], object]

QUESTIONS: dict[str, Question] = {
    "claim": lambda ledger, _: ledger.claim(new_claim()),
    "claim, refused": lambda ledger, held: ledger.claim(new_claim(digest=held.digest)),
    "complete": lambda ledger, held: ledger.complete(held, DONE),
    "release": lambda ledger, held: ledger.release(held, retries=0, reset=True, keep=HOUR),
    "renew": lambda ledger, held: ledger.renew([renewal(held)] * 50),
    "read": lambda ledger, held: ledger.read(held.digest),
    "mark_continued": lambda ledger, held: ledger.mark_continued(held.digest, held.attempt),
    "mark_unknown": lambda ledger, held: ledger.mark_unknown(held.digest, held.attempt),
    "hold": lambda ledger, held: ledger.hold(held.digest, b"message"),
    "held": lambda ledger, held: ledger.held(held.digest),
    "ping": lambda ledger, _: ledger.ping(),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_is_one_round_trip(ledger: RedisLedger, question: Question, monkeypatch: pytest.MonkeyPatch) -> None:
    held = granted(ledger, new_claim())
    question(ledger, granted(ledger, new_claim()))  # the server knows the script from here on
    with counted(monkeypatch) as sent:
        question(ledger, held)
    assert len(sent) == 1


def test_a_rescue_of_many_is_two_round_trips_and_of_none_one(
    ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(40):
        granted(ledger, new_claim(lease=0.0))
    ledger.rescue(10)
    with counted(monkeypatch) as sent:
        assert len(ledger.rescue(100)) == 30
        assert len(sent) == 2
        assert list(ledger.rescue(100)) == []
        assert len(sent) == 3


def test_a_claim_that_is_renewed_between_finding_and_freeing_is_left_alone(
    ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rescuers of two processes: the other one freed it, and it was claimed anew."""
    claim = new_claim(lease=0.0)
    granted(ledger, claim)
    find = ledger._scripts.due

    def found_and_overtaken(**asked: Any) -> object:
        found = find(**asked)
        assert found == [claim.digest.hex().encode()]
        granted(ledger, next_attempt(claim, lease=HOUR))
        return found

    monkeypatch.setattr(ledger._scripts, "due", found_and_overtaken)
    assert list(ledger.rescue(10)) == []
    assert entry_of(ledger, claim).state is State.CLAIMED


def test_a_server_that_forgot_the_scripts_is_told_them_again(ledger: RedisLedger, server: redis.Redis) -> None:
    server.script_flush()
    held = granted(ledger, new_claim())
    server.script_flush()
    assert ledger.complete(held, DONE)


def test_a_claim_whose_answer_was_lost_is_granted_when_asked_again(
    ledger: RedisLedger, lose_an_answer: Callable[[], list[str]]
) -> None:
    claim = new_claim()
    lost = lose_an_answer()
    held = granted(ledger, claim)
    assert lost
    assert (held.attempts, held.deaths) == (1, 0)
    assert entry_of(ledger, claim).fence == held.fence


def test_a_takeover_whose_answer_was_lost_counts_one_death(
    ledger: RedisLedger, lose_an_answer: Callable[[], list[str]]
) -> None:
    claim = new_claim(lease=0.0)
    granted(ledger, claim)
    lost = lose_an_answer()
    held = granted(ledger, next_attempt(claim, lease=HOUR))
    assert lost
    assert (held.takeover, held.attempts, held.deaths) == (True, 2, 1)


@pytest.mark.parametrize("end", ["complete", "release"])
def test_a_settlement_whose_answer_was_lost_is_not_fenced_by_itself(
    ledger: RedisLedger, lose_an_answer: Callable[[], list[str]], end: str
) -> None:
    held = granted(ledger, new_claim())
    lost = lose_an_answer()
    assert QUESTIONS[end](ledger, held)
    assert lost


def test_a_message_whose_answer_was_lost_is_kept_once(
    ledger: RedisLedger, lose_an_answer: Callable[[], list[str]]
) -> None:
    held = granted(ledger, new_claim())
    ledger.mark_unknown(held.digest, held.attempt)
    lost = lose_an_answer()
    ledger.hold(held.digest, b"message")
    assert lost
    assert list(ledger.held(held.digest)) == [b"message"]


def test_a_time_out_is_not_asked_again(ledger: RedisLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is spent; the claim may stand, and its lease ends."""
    asked = []

    def silent(_connection: Connection, *_args: object, **_options: object) -> object:
        asked.append("once")
        message = "Timeout reading from socket"
        raise redis.TimeoutError(message)

    monkeypatch.setattr(Connection, "read_response", silent)
    with pytest.raises(LedgerUnavailable, match="Timeout"):
        ledger.claim(new_claim())
    assert asked == ["once"]


def test_what_is_read_after_a_completion_is_what_was_completed(ledger: RedisLedger) -> None:
    held = granted(ledger, new_claim())
    ledger.complete(held, Outcome(state=State.COMPLETED, result=None, keep=None))
    entry = entry_of(ledger, held)
    assert (entry.result, entry.result_kept, entry.lease_left) == (None, True, 0.0)
