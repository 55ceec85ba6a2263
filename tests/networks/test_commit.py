"""The answer to COMMIT is lost: the ledger is asked how it ended, and each of the truths ends in one effect."""

import psycopg

from effectonce.lab.proxy import Fault
from tests.networks.conftest import Market

COMMIT = rb"COMMIT"
ASKS = rb"pg_try_advisory_xact_lock"
INSERTS = rb"insert into charges|INSERT INTO charges"


def test_a_commit_whose_answer_was_lost_is_found_to_have_happened(market: Market, order: int) -> None:
    """A81."""
    rule = market.ledger.when(COMMIT, Fault.LOST_REPLY, after=INSERTS)
    result = market.send("charge", order)
    assert result.get(timeout=30) == f"charged {order}"
    assert rule.count == 1
    assert market.effects()[order] == 1
    assert market.bodies(f"charge:{order}") == 1
    assert "effect.deferred" not in market.logs()


def test_a_commit_that_never_arrived_is_done_again(market: Market, order: int) -> None:
    rule = market.ledger.when(COMMIT, Fault.LOST_REQUEST, after=INSERTS)
    result = market.send("charge", order)
    assert result.get(timeout=30) == f"charged {order}"
    assert rule.count == 1
    assert market.effects()[order] == 1
    assert market.bodies(f"charge:{order}") == 2


def test_a_server_that_is_still_committing_is_waited_for(market: Market, order: int) -> None:
    """Hole H14: a deferred trigger keeps the commit from ending until the worker has asked, and seen no entry."""
    with psycopg.connect(market.env["SHOP_LEDGER"].replace("+psycopg", ""), autocommit=True) as direct:
        direct.execute(
            "create or replace function dawdle() returns trigger language plpgsql as "
            "$$ begin perform pg_advisory_xact_lock(4711); return null; end $$"
        )
        direct.execute(
            "create constraint trigger dawdles after insert on charges deferrable initially deferred "
            "for each row execute function dawdle()"
        )
        direct.execute("select pg_advisory_lock(4711)")
        try:
            rule = market.ledger.when(COMMIT, Fault.LOST_CLIENT, after=INSERTS)
            result = market.send("charge", order)
            rule.wait()
            asked = market.ledger.when(ASKS, Fault.NOTHING, times=9)
            asked.wait(3)
            assert market.effects()[order] == 0
        finally:
            direct.execute("select pg_advisory_unlock(4711)")
            direct.execute("drop trigger dawdles on charges")
    assert result.get(timeout=30) == f"charged {order}"
    assert market.effects()[order] == 1
    assert market.bodies(f"charge:{order}") == 1
    assert "effect.deferred" not in market.logs()


def test_a_commit_that_is_late_is_waited_for(market: Market, order: int) -> None:
    rule = market.ledger.when(COMMIT, Fault.LATE_REQUEST, after=INSERTS)
    result = market.send("charge", order)
    rule.wait()
    market.ledger.when(ASKS, Fault.NOTHING, times=9).wait(3)
    rule.let_go()
    assert result.get(timeout=30) == f"charged {order}"
    assert market.effects()[order] == 1
    assert market.bodies(f"charge:{order}") == 1
    assert "effect.deferred" not in market.logs()
