"""The pruner of a SQL ledger: what goes, who leads, and what its progress says."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from effectonce.domain.claims import State
from effectonce.runtime import pruner as pruning
from effectonce.runtime.pruner import KEY, Pruner, PruningLoop
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.testing.conformance.scene import DONE, granted, new_claim


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqlLedger]:
    ledger = SqlLedger.open(f"sqlite:///{tmp_path / 'effects.sqlite'}")
    ledger.create_schema()
    yield ledger
    ledger.close()


def over(ledger: SqlLedger, number: int) -> list[bytes]:
    """Effects whose time is over."""
    digests = []
    for _ in range(number):
        held = granted(ledger, new_claim())
        assert ledger.complete(held, replace(DONE, keep=0.0))
        digests.append(held.digest)
    return digests


def test_a_pass_takes_all_that_is_over_in_batches_and_says_how_far_it_is(
    ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "BATCH", 4)
    gone = over(ledger, 9)
    stays = granted(ledger, new_claim())
    ledger.complete(stays, DONE)
    told: list[tuple[int, int, float]] = []
    assert Pruner(ledger, sleep=lambda _: None).prune(lambda *seen: told.append(seen)) == 9
    assert [ledger.read(digest) for digest in gone] == [None] * 9
    assert ledger.read(stays.digest) is not None
    assert len(told) >= 3
    assert told == sorted(told)
    assert [share for _, _, share in told] == sorted({share for _, _, share in told})
    assert told[-1][2] == 1.0


def test_a_look_counts_what_a_pass_would_take_and_leaves_it(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "BATCH", 4)
    gone = over(ledger, 9)
    ledger.complete(granted(ledger, new_claim()), DONE)
    granted(ledger, new_claim())
    told: list[tuple[int, int, float]] = []
    assert Pruner(ledger, sleep=lambda _: None).over(lambda *seen: told.append(seen)) == 9
    assert told[-1][1:] == (9, 1.0)
    assert all(ledger.read(digest) for digest in gone)
    assert ledger.find(KEY) == [], "a look claims nothing"
    assert Pruner(ledger).prune() == 9


def test_an_entry_whose_messages_are_not_sent_yet_stays(ledger: SqlLedger) -> None:
    (digest,) = over(ledger, 1)
    with ledger.source.engine.begin() as connection:
        connection.execute(
            text(
                "insert into effectonce_outbox (due, since, tries, stage, effect, task, task_id, exchange, "
                "routing_key, content_type, content_encoding, headers, properties, declares, body) values "
                "(0, 0, 0, 1, :effect, '', '', '', '', '', '', '', '', '', :body)"
            ),
            {"effect": digest, "body": b""},
        )
    assert Pruner(ledger).prune() == 0
    with ledger.source.engine.begin() as connection:
        connection.execute(text("delete from effectonce_outbox"))
    assert Pruner(ledger).prune() == 1


def test_one_process_prunes_at_a_time(ledger: SqlLedger) -> None:
    over(ledger, 1)
    answers = []

    def in_the_middle(*_: float) -> None:
        answers.append(Pruner(ledger).prune())

    assert Pruner(ledger).prune(in_the_middle) == 1
    assert answers == [None]
    assert Pruner(ledger).prune() == 0


def test_a_pass_that_breaks_off_lets_the_next_one_begin(ledger: SqlLedger) -> None:
    def broken(*_: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Pruner(ledger).prune(broken)
    assert Pruner(ledger).prune() == 0


def test_a_pass_is_due_when_the_last_one_is_long_over_whoever_made_it(ledger: SqlLedger) -> None:
    now = time.time()
    assert Pruner(ledger).is_due(now)
    Pruner(ledger).prune()
    assert not Pruner(ledger).is_due(now + 1)
    assert Pruner(ledger).is_due(now + pruning.EVERY + 60)
    (entry,) = ledger.find(KEY)
    assert entry.state is State.RELEASED


def test_the_loop_of_a_worker_tells_what_went(ledger: SqlLedger) -> None:
    over(ledger, 3)
    told: list[tuple[str, object]] = []
    loop = PruningLoop(lambda: [ledger], emit=lambda event: told.append((event.name.value, event.facts["removed"])))
    assert loop.step() is False
    loop.step()
    assert told == [("entries.pruned", 3)]


def test_it_has_a_quarter_of_one_connections_time_at_most(ledger: SqlLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each batch but the last it pauses three times as long as that one took."""
    monkeypatch.setattr(pruning, "BATCH", 4)
    over(ledger, 9)
    instants = iter(float(second) for second in range(100))
    slept: list[float] = []
    assert Pruner(ledger, sleep=slept.append, clock=lambda: next(instants)).prune() == 9
    assert set(slept) == {3.0}
