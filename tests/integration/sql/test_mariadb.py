"""What is special about MariaDB: what it does without a word, and whom its locks keep waiting."""

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.domain.claims import Granted, Refused, State
from effectonce.errors import LedgerUnavailable, TransactionEscaped
from effectonce.ports import Conflict, Work
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.mariadb import MariaDB
from effectonce.testing.conformance.scene import HOUR, MOMENT, entry_of, granted, new_claim, next_attempt, renewal
from tests.integration.sql.deadlocks import deadlock
from tests.integration.sql.scene import CHARGES, DONE, NONE, carried_out, charge, charges, open_work

LEVELS = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]
AT_ONCE = 0.9
"""Seconds; the shortest wait that the server knows, besides none, is one."""


@pytest.fixture
def database(mariadb_url: str) -> str:
    return mariadb_url


@pytest.fixture(params=["ours", *LEVELS])
def at_level(request: pytest.FixtureRequest, engine: sa.Engine) -> Iterator[SqlLedger]:
    """A ledger on an engine of ours, and on a user's at each level."""
    if request.param == "ours":
        ledger = SqlLedger.open(engine.url)
    else:
        ledger = SqlLedger.open(sa.create_engine(engine.url, isolation_level=request.param))
    yield ledger
    ledger.source.engine.dispose()


@pytest.fixture
def pair(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("create table pair (id int primary key, x int)")
        connection.exec_driver_sql("insert into pair values (1, 0), (2, 0)")


@pytest.mark.parametrize("outcome", [NONE, DONE], ids=["None", "a result"])
def test_a_body_that_swallows_a_deadlock_and_goes_on_commits_nothing(
    ledger: SqlLedger, engine: sa.Engine, pair: None, outcome: Any
) -> None:
    """The server rolls all of it back, the entry too, and what the body does then is in a transaction without it."""
    claim = new_claim()

    def body(work: Work) -> None:
        charge(work.connection, claim)
        deadlock(work.connection, engine)
        charge(work.connection, claim)

    with pytest.raises(Conflict):
        carried_out(ledger, claim, body, outcome=outcome)
    assert charges(engine, claim) == 0
    assert ledger.read(claim.digest) is None
    assert carried_out(ledger, claim, lambda work: charge(work.connection, claim)) is True
    assert charges(engine, claim) == 1


def test_a_body_that_begins_anew_behind_our_back_commits_nothing(ledger: SqlLedger, engine: sa.Engine) -> None:
    """As a lock wait that timed out does under ``innodb_rollback_on_timeout``."""
    claim = new_claim()

    def body(work: Work) -> None:
        driver: Any = work.connection.connection.driver_connection
        driver.rollback()
        driver.cursor().execute(f"insert into {CHARGES} values ('{claim.digest.hex()}')")

    with pytest.raises(Conflict):
        carried_out(ledger, claim, body)
    assert charges(engine, claim) == 0


@pytest.mark.parametrize(
    "statement",
    [
        "create table other (x int)",
        f"/* a note */ alter table {CHARGES} add column y int",
        f"# a note\ntruncate {CHARGES}",
        f"drop table {CHARGES}",
        "set autocommit = 1",
        "lock tables pair write",
    ],
)
def test_a_statement_that_commits_without_a_word_is_vetoed(
    ledger: SqlLedger, engine: sa.Engine, pair: None, statement: str
) -> None:
    claim = new_claim()

    def body(work: Work) -> None:
        charge(work.connection, claim)
        work.connection.exec_driver_sql(statement)

    with pytest.raises(TransactionEscaped):
        carried_out(ledger, claim, body)
    assert charges(engine, claim) == 0
    assert ledger.read(claim.digest) is None


def test_a_table_of_the_session_may_be_made_in_a_body(ledger: SqlLedger, engine: sa.Engine) -> None:
    claim = new_claim()

    def body(work: Work) -> None:
        work.connection.exec_driver_sql("create temporary table mine (x int)")
        charge(work.connection, claim)
        work.connection.exec_driver_sql("drop temporary table mine")

    assert carried_out(ledger, claim, body) is True
    assert charges(engine, claim) == 1


def test_a_commit_on_another_connection_is_seen_under_either_name_of_the_dialect(
    ledger: SqlLedger, engine: sa.Engine
) -> None:
    claim = new_claim()
    other = sa.create_engine(engine.url.set(drivername="mysql+pymysql"))

    def body(_: Work) -> None:
        with other.begin() as connection:
            charge(connection, claim)

    with pytest.raises(TransactionEscaped):
        carried_out(ledger, claim, body)
    assert charges(engine, claim) == 0
    other.dispose()


ASKED: dict[str, Callable[[SqlLedger, Any], object]] = {
    "claim": lambda ledger, claim: ledger.claim(next_attempt(claim)),
    "another body": lambda ledger, claim: carried_out(ledger, next_attempt(claim), lambda _: None),
    "read": lambda ledger, claim: ledger.read(claim.digest),
    "find": lambda ledger, claim: ledger.find(claim.key),
    "entries": lambda ledger, _: ledger.entries(state=None, limit=100),
    "counts": lambda ledger, _: ledger.counts(),
    "rescue": lambda ledger, _: ledger.rescue(100),
    "has ended": lambda ledger, claim: ledger.has_ended(claim.digest, claim.attempt, State.COMPLETED),
    "ping": lambda ledger, _: ledger.ping(),
}


def test_nobody_waits_for_a_body(at_level: SqlLedger) -> None:
    """Neither for one that has inserted its entry, nor for one whose claim is committed and whose lease has ended."""
    first, repeated = new_claim(), new_claim(lease=MOMENT)
    held = granted(at_level, repeated)
    with open_work(at_level, first) as one, open_work(at_level, repeated, granted=held) as other:
        assert isinstance(one.enter(), Granted)
        assert other.enter() == held
        while entry_of(at_level, repeated).lease_left > -2 * MOMENT:
            pass
        for what, ask in ASKED.items():
            for claim in (first, repeated):
                before = time.monotonic()
                answer = ask(at_level, claim)
                assert time.monotonic() - before < AT_ONCE, what
                assert not isinstance(answer, Granted), what
                assert answer is not True, what
        for work in (other, one):
            assert work.finish(NONE)
            work.commit()
    assert {entry_of(at_level, claim).state for claim in (first, repeated)} == {State.COMPLETED}


def test_a_held_entry_is_neither_poisoned_nor_rescued(ledger: SqlLedger) -> None:
    claim = new_claim(lease=MOMENT)
    held = granted(ledger, claim)
    entry = entry_of(ledger, claim)
    with open_work(ledger, claim, granted=held) as work:
        work.enter()
        while entry_of(ledger, claim).lease_left > -2 * MOMENT:
            pass
        before = time.monotonic()
        assert not ledger.poison(entry, b"message")
        assert ledger.rescue(100) == []
        assert time.monotonic() - before < 2 * AT_ONCE
    assert entry_of(ledger, claim).state is State.CLAIMED
    assert [each.digest for each in ledger.rescue(100)] == [claim.digest]


def test_effects_beside_each_other_are_never_busy_for_each_other(at_level: SqlLedger) -> None:
    """Digests that stand next to each other in the index, and a gap that one looked for in vain."""
    digests = [bytes([7] * 15 + [last]) for last in range(6)]
    claims = [new_claim(digest=digest) for digest in digests]
    with open_work(at_level, claims[0]) as one, open_work(at_level, claims[2]) as other:
        assert isinstance(one.enter(), Granted)
        assert isinstance(other.enter(), Granted)
        assert at_level.read(digests[4]) is None
        assert isinstance(at_level.claim(claims[1]), Granted)
        assert carried_out(at_level, claims[3], lambda _: None) is True
        for work in (other, one):
            assert work.finish(NONE)
            work.commit()


def test_a_settlement_waits_a_little_for_a_row_and_then_says_so(
    ledger: SqlLedger, engine: sa.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MariaDB, "soon", MariaDB.soon.replace("=5", "=1"))
    claim = new_claim()
    held = granted(ledger, claim)
    with engine.connect() as other:
        other.execute(
            sa.text("select 1 from effectonce_entries where digest = :digest for update"), {"digest": claim.digest}
        )
        with pytest.raises(LedgerUnavailable, match="too long"):
            ledger.complete(held, DONE)
        other.rollback()
    assert ledger.complete(held, DONE)


def test_the_clock_is_the_same_whatever_the_zone_of_the_session(engine: sa.Engine) -> None:
    """An hour that comes twice a year would bring fences back."""
    clock = sa.text(f"select {MariaDB.clock}")
    with engine.connect() as connection:
        for zone in ("+05:00", "-11:00", "SYSTEM"):
            connection.exec_driver_sql(f"set time_zone = '{zone}'")
            assert connection.scalar(clock) / 1_000_000 == pytest.approx(time.time(), abs=60)
        connection.exec_driver_sql("set timestamp = 1761438600")  # the first of two half past two, in Berlin
        assert connection.scalar(clock) == 1761438600 * 1_000_000
        connection.exec_driver_sql("set timestamp = 1761442200")
        assert connection.scalar(clock) == 1761442200 * 1_000_000


def test_a_body_that_is_silent_for_too_long_loses_its_key(ledger: SqlLedger, engine: sa.Engine) -> None:
    """A frozen process, or a machine that is gone, holds a key no longer than its task may be silent."""
    frozen, claim = new_claim(time_limit=0.5, lease=0.5), new_claim(time_limit=540.0, lease=60.0)
    with open_work(ledger, frozen) as work:
        work.enter()
        charge(work.connection, frozen)
        end = time.monotonic() + 30
        while isinstance(ledger.claim(next_attempt(frozen)), Refused):
            assert time.monotonic() < end
        with pytest.raises(LedgerUnavailable):
            work.finish(NONE)
    assert charges(engine, frozen) == 0
    for each in (claim, new_claim(time_limit=None)):
        with open_work(ledger, each) as work:
            work.enter()
            limit = work.connection.exec_driver_sql("select @@session.idle_transaction_timeout").scalar()
            assert limit == (each.longest_silence or 0)


def test_a_users_connection_keeps_its_own_limit_of_silence(engine: sa.Engine) -> None:
    with open_work(SqlLedger.open(engine), new_claim(time_limit=540.0, lease=60.0)) as work:
        work.enter()
        assert work.connection.exec_driver_sql("select @@session.idle_transaction_timeout").scalar() == 0


def test_a_renewal_of_many_is_one_statement_and_one_question(ledger: SqlLedger) -> None:
    statements: list[str] = []
    sa.event.listen(ledger.source.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    held = [granted(ledger, new_claim()) for _ in range(20)]
    gone = granted(ledger, new_claim(lease=MOMENT))
    while entry_of(ledger, gone).lease_left > 0:
        pass
    statements.clear()
    kept = ledger.renew([renewal(each, lease=2 * HOUR) for each in (*held, gone)])
    assert kept == {each.attempt for each in held}
    assert len(statements) == 2


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("8.0.36", "MySQL 8.0.36"),
        ("10.5.9-MariaDB-log", "MariaDB 10.5.9, and 10.6 is needed"),
        ("5.5.5-10.5.9-MariaDB", "MariaDB 10.5.9, and 10.6 is needed"),
        ("10.11.6-MariaDB-0+deb12u1", None),
        ("11.4.2-MariaDB", None),
    ],
)
def test_other_servers_are_refused_with_the_reason(version: str, reason: str | None) -> None:
    asked = SimpleNamespace(scalar=lambda: version)
    dialect: Any = MariaDB()
    said = dialect.check_server(SimpleNamespace(exec_driver_sql=lambda _: asked))
    assert reason in said if reason else said is None


def test_an_url_without_a_driver_takes_pymysql(mariadb_url: str) -> None:
    for name in ("mariadb", "mysql"):
        ledger = SqlLedger.open(mariadb_url.replace("mariadb+pymysql", name))
        ledger.create_schema()
        ledger.ping()
        ledger.close()


def test_refusals_say_busy_or_show_the_entry(ledger: SqlLedger) -> None:
    claim = new_claim()
    with open_work(ledger, claim) as work:
        work.enter()
        assert ledger.claim(next_attempt(claim)) == Refused(entry=None)
        work.finish(DONE)
        work.commit()
    answer = carried_out(ledger, next_attempt(claim), lambda _: None)
    assert isinstance(answer, Refused)
    assert answer.entry is not None
    assert answer.entry.result == b"done"
