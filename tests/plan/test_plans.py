"""Each hot statement finds its rows by its index, also in a table that has grown, and an entry stays narrow."""

import itertools
import secrets
import uuid
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import pytest
import sqlalchemy as sa

from effectonce.domain.claims import State
from effectonce.ports import Renewal
from effectonce.stores.sql.ledger import SqlLedger
from effectonce.stores.sql.rows import claim_values, renewal_values
from effectonce.testing.conformance.scene import new_claim
from tests.plan.asking import analyze, plan_of, reads_all
from tests.services import Fleet

ROWS = 5_000
CLAIMS = 50
WIDEST = 250
"""Bytes on PostgreSQL."""
BATCH = 500


@pytest.fixture(scope="module", params=["postgresql", "mariadb"])
def filled(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[SqlLedger]:
    """A ledger with many finished entries and some claims, as the ordinary way writes them."""
    server: Any = getattr(fleet, request.param)()
    url = server.fresh_url()
    ledger = SqlLedger.open(url)
    ledger.create_schema()
    _fill(ledger)
    yield ledger
    ledger.close()
    server.put_back(url)


def _fill(ledger: SqlLedger) -> None:
    """With the ledger's own statement, in few transactions: first deliveries without a result, then claims."""
    states = itertools.chain(itertools.repeat(State.COMPLETED, ROWS), itertools.repeat(State.CLAIMED, CLAIMS))
    for batch in itertools.batched(states, BATCH) if hasattr(itertools, "batched") else _batched(states):
        with ledger.source.engine.begin() as connection:
            for state in batch:
                values = claim_values(_ordinary(), state=state, keep=3600.0)
                connection.execute(ledger.statements.insert, values)
    analyze(ledger)


def _batched(states: Iterator[State]) -> Iterator[list[State]]:
    while batch := list(itertools.islice(states, BATCH)):
        yield batch


def _ordinary() -> Any:
    """A claim as a task makes one: a digest of each argument, a UUID as task id, a key of some words."""
    number = secrets.randbelow(10**6)
    return new_claim(
        key=f"shop.charge:{number:06}",
        task_id=str(uuid.uuid4()),
        fingerprint=secrets.token_bytes(16),
    )


def _values(ledger: SqlLedger) -> dict[str, Any]:
    with ledger.source.engine.connect() as connection:
        row = connection.execute(sa.text("select digest, fence, attempt from effectonce_entries limit 1")).one()
    digest, fence, attempt = bytes(row.digest), row.fence, bytes(row.attempt)
    held = [Renewal(digest=digest, attempt=attempt, fence=fence, lease=60.0)]
    return {
        **claim_values(new_claim(), state=State.CLAIMED, keep=60.0),
        **renewal_values(held, lists=ledger.dialect.lists)[0],
        "digest": digest,
        "fence": fence,
        "attempt": attempt,
        "old_fence": fence,
        "old_attempt": attempt,
        "old_state": 1,
        "reentry": 0,
        "deaths": 0,
        "state": 2,
        "inserted": 1,
        "result": None,
        "reset": 0,
        "seen": 1,
        "limit": 100,
        "silence": None,
    }


BY_KEY = ["meet", "take", "complete", "release", "mark_continued", "mark_unknown", "rescue", "poison", "read", "resume"]


@pytest.mark.parametrize("name", [*BY_KEY, "renew"])
def test_a_statement_about_one_effect_finds_it_by_its_primary_key(filled: SqlLedger, name: str) -> None:
    plan = plan_of(filled, getattr(filled.statements, name), _values(filled))
    if filled.dialect.name == "mariadb":
        entries = [table for table in plan.split("; ") if table.split()[0] in {"effectonce_entries", "e"}]
        assert entries, plan
        assert all(table.split()[2] == "PRIMARY" and " ALL " not in table for table in entries), plan
    else:
        assert "effectonce_entries_pkey" in plan
        assert not reads_all(filled, plan, "effectonce_entries")


def test_the_rescuer_reads_claims_only(filled: SqlLedger) -> None:
    plan = plan_of(filled, filled.statements.overdue, _values(filled))
    assert "effectonce_claimed" in plan
    assert "filesort" not in plan
    assert '"Sort"' not in plan


@pytest.mark.parametrize("name", ["find", "search", "page", "keeping.page_end", "keeping.prune", "keeping.over"])
def test_a_piece_of_the_table_is_a_range_of_its_primary_key(filled: SqlLedger, name: str) -> None:
    """A sixteenth of it, as a search and the pruner go through it."""
    statement = attrgetter(name)(filled.statements)
    range_ = {"after": b"\x10", "last": b"\x20", "skip": 300, "words": "%shop%", "key": "shop.charge:000001"}
    plan = plan_of(filled, statement, {**_values(filled), **range_})
    assert not reads_all(filled, plan, "effectonce_entries"), plan
    assert ("PRIMARY" if filled.dialect.name == "mariadb" else "effectonce_entries_pkey") in plan


@pytest.mark.parametrize("name", ["claimed_page", "waiting_page", "standing", "in_flight"])
def test_what_stands_open_is_read_by_its_own_index(filled: SqlLedger, name: str) -> None:
    plan = plan_of(filled, getattr(filled.statements, name), {**_values(filled), "after": b"\x10", "state": 5})
    index = "effectonce_waiting" if name in {"waiting_page", "standing"} else "effectonce_claimed"
    assert ("effectonce_claimed" if filled.dialect.name == "mariadb" else index) in plan
    assert not reads_all(filled, plan, "effectonce_entries")


@pytest.mark.parametrize("filled", ["postgresql"], indirect=True)
def test_an_entry_and_its_place_in_the_indexes_are_narrow(filled: SqlLedger) -> None:
    """What each entry adds to the size of an empty table, in full pages.

    Pages that are filled in the order of digests are not full: see the page on stores.
    """
    with filled.source.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("alter index effectonce_entries_pkey set (fillfactor = 100)")
        connection.exec_driver_sql("vacuum full effectonce_entries")
        connection.exec_driver_sql("create table empty_entries (like effectonce_entries including all)")
        sizes = "select pg_total_relation_size('effectonce_entries') - pg_total_relation_size('empty_entries')"
        size = connection.exec_driver_sql(sizes).scalar_one()
        connection.exec_driver_sql("drop table empty_entries")
    assert size / (ROWS + CLAIMS) <= WIDEST, size / (ROWS + CLAIMS)
